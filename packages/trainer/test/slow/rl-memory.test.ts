/** Budget: 10 s. Memory over 200 steps of RL with publication and checkpoints (known fault 118). */
import { rmSync } from 'node:fs'
import { liveTensors } from '@trilithon/tensor'
import { expect, test } from 'vitest'
import { makeTinyFolder, tinySetup } from '../../src/rl/__fixtures__/tiny-run.ts'
import { createRlTrainer } from '../../src/rl/create-rl-trainer.ts'
import { fakeBatch } from '../../src/rl/fake-batches.ts'
import { growthPerStep, residentMegabytes } from './growth.ts'

test('memory does not grow from step to step', async () => {
  const folder = makeTinyFolder()
  const setup = tinySetup(folder, {
    max_steps: 200,
    model: { name: 'model', seq_len: 256 },
    ckpt: { interval: 50, keep_last: 1 },
    max_off_policy_steps: 8,
  })
  const trainer = await createRlTrainer({ setup })
  const megabytes: number[] = []
  const tensors = new Set<number>()
  while (!trainer.isFinished) {
    await trainer.step(fakeBatch(trainer.version, { batchSize: 16, varies: true, seqLen: 24, vocabSize: 20, profile: 'fp32' }))
    megabytes.push(residentMegabytes())
    tensors.add(liveTensors().tensors)
  }
  trainer.dispose()
  rmSync(folder, { recursive: true })
  expect(tensors.size).toBe(1)
  expect(growthPerStep(megabytes)).toBeLessThan(0.1)
})
