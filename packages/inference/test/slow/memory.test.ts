/** Budget: 15 s. Memory over 10,000 requests: what a request takes is gone after it. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { liveTensors } from '@trilithon/tensor'
import { afterAll, expect, test } from 'vitest'
import { createEngine } from '../../src/engine/create-engine.ts'
import { generate, requestOf } from '../running.ts'
import { TestFolders } from '../tiny-models.ts'

const folders = new TestFolders()
afterAll(() => folders.remove())

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

test('memory stays flat over 10,000 requests', { timeout: 60_000 }, async () => {
  const engine = await createEngine({
    modelFolder: folders.model('qwen3_moe', 1, { num_hidden_layers: 1, mlp_only_layers: [] }),
    thread: 'here',
    maxModelLen: 64,
    blockSize: 4,
    routedExperts: true,
    kvBytes: 2 ** 20,
  })
  const used: number[] = []
  const tensors = new Set<number>()
  let state = 1
  for (let round = 0; round < 80; round++) {
    await Promise.all(
      Array.from({ length: 125 }, () => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0
        const ids = Array.from({ length: 1 + (state >>> 29) }, (_, index) => (state >>> (index * 3)) % 61)
        // A salt per group, as in training: names of blocks and roots of salts come and go.
        return generate(
          engine,
          requestOf(ids, { salt: `group ${state % 5000}`, routedExpertsFrom: 0, sampling: { maxTokens: 2, seed: BigInt(state) } }),
        )
      }),
    )
    collect()
    used.push(process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers)
    tensors.add(liveTensors().tensors)
  }
  expect(engine.stats().finished.length).toBe(10_000)
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const growth = mean(used.slice(-10)) - mean(used.slice(30, 40))
  // By request: nothing that is kept would fit into this.
  expect(growth / 5000).toBeLessThan(40)
  expect(tensors.size).toBe(1)
  await engine.dispose()
})
