import { expect, test } from 'vitest'
import { learningRate, type Scheduler } from './learning-rate.ts'

const rates = (scheduler: Scheduler, maxSteps: number | null, steps = maxSteps ?? 6) =>
  Array.from({ length: steps }, (_, step) => Number(learningRate(scheduler, 1e-3, step, maxSteps).toPrecision(6)))

// The numbers are those of torch.optim.lr_scheduler: LinearLR, ConstantLR and CosineAnnealingLR in a SequentialLR.
test('linear rises, stays, and falls so that the last step has the least rate', () => {
  expect(rates({ type: 'linear', warmup_steps: 4, decay_steps: 3, min_lr: 2e-4 }, 10)).toEqual([
    0.0002, 0.0004, 0.0006, 0.0008, 0.001, 0.001, 0.001, 0.001, 0.0006, 0.0002,
  ])
})

test('linear without decay needs no end', () => {
  expect(rates({ type: 'linear', warmup_steps: 2, decay_steps: 0, min_lr: 0 }, null)).toEqual([1e-11, 0.0005, 0.001, 0.001, 0.001, 0.001])
})

test('cosine falls from the end of the warm-up to the least rate at the end', () => {
  expect(rates({ type: 'cosine', warmup_steps: 2, min_lr: 1e-4 }, 6)).toEqual([0.0001, 0.00055, 0.001, 0.000868198, 0.00055, 0.000231802])
  expect(learningRate({ type: 'cosine', warmup_steps: 2, min_lr: 1e-4 }, 1e-3, 9, 6)).toBeCloseTo(1e-4, 12)
})

test('constant is constant, and a rate of 0 stays 0', () => {
  expect(rates({ type: 'constant' }, 3)).toEqual([1e-3, 1e-3, 1e-3])
  expect(learningRate({ type: 'cosine', warmup_steps: 2, min_lr: 0 }, 0, 3, 6)).toBe(0)
})
