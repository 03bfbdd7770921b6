/** Budget: 15 s. A short form of tools/bench/orchestrator.mjs: memory does not grow, and a rollout costs less than 1 ms and 1 us per token. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { stickyRouter } from '@trilithon/builtin'
import type { Router } from '@trilithon/core'
import { expect, it } from 'vitest'
import { runSteps } from '../../src/fakes/run-steps.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

it('costs little, and nothing of a step stays', async () => {
  const [steps, batchSize, tokens] = [260, 32, 64]
  const points: { readonly step: number; readonly bytes: number }[] = []
  let before = process.cpuUsage()
  await runSteps({
    ...{ steps, batchSize, tokens, groupSize: 4, router: stickyRouter.create({ config: {} } as never) as Router },
    onStep(step) {
      // What is compiled and cached first is no growth.
      if (step === 20) before = process.cpuUsage()
      if (step < 60 || step % 20 !== 0) return
      collect()
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      points.push({ step, bytes: heapUsed + arrayBuffers })
    },
  })
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / ((steps - 20) * batchSize)).toBeLessThan(1000 + tokens)
  const [first] = points
  const last = points.at(-1)
  if (first === undefined || last === undefined) throw new Error('nothing was measured')
  expect((last.bytes - first.bytes) / (last.step - first.step)).toBeLessThan(0.1 * 2 ** 20)
})
