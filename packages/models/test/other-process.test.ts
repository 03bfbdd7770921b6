/** Runs the built package (dist) in another process: the test target builds first. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { someIds, tinyFamilies, tinyModelJson } from '@trilithon/testing'
import { describe, expect, test } from 'vitest'
import { createModel } from '../src/index.ts'
import { packedHidden, packedLogprobs } from './running.ts'
import { tinyConfig } from './tiny-models.ts'

const script = fileURLToPath(new URL('./decode-elsewhere.mjs', import.meta.url))
const bitsOf = (values: Float32Array) => [...new Uint32Array(values.slice().buffer)]

describe.each(tinyFamilies)('%s', (family) => {
  test('what another process decodes over pages has the bits of the packed forward here: hidden states and log-probabilities', () => {
    const ids = someIds(21, 19, 8)
    const model = createModel(tinyConfig(family), { seed: 7 })
    const hidden = bitsOf(packedHidden(model, [ids]))
    const logprobs = bitsOf(packedLogprobs(model, ids))
    model.dispose()
    for (const [pieces, blockSize, threads] of [
      [[5, 1, 1, 3], 4, '1'],
      [[1], 3, '2'],
    ] as const) {
      const input = JSON.stringify({ json: tinyModelJson[family], seed: 7, ids, pieces, blockSize })
      const child = spawnSync(process.execPath, [script, input], { encoding: 'utf8', env: { ...process.env, TRILITHON_THREADS: threads } })
      expect(child.stderr).toBe('')
      expect(JSON.parse(child.stdout)).toEqual({ hidden, logprobs })
    }
  })
})
