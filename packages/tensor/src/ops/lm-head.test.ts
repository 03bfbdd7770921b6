import { afterEach, expect, test } from 'vitest'
import { fromArray, liveTensors, lmHead, packWeight, record, scope, type Tensor, toArray } from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

function inputs(): { hidden: Tensor; weight: Tensor; targets: Tensor; temperature: Tensor } {
  return {
    hidden: fromArray('f32', [2, 3], [1, -1, 0.5, 2, 0, 1]),
    weight: fromArray('f32', [4, 3], [1, 2, 3, 4, 5, 6, -1, -2, -3, 0, 1, 0]),
    targets: fromArray('i32', [2], [1, 3]),
    temperature: fromArray('f32', [2], [1, 2]),
  }
}

test('log-probability and entropy are those of the softmax; a packed weight gives the same bits', () => {
  scope(() => {
    const { hidden, weight, targets, temperature } = inputs()
    const { logprobs, entropy } = lmHead(hidden, weight, targets, temperature, { hasEntropy: true })
    const logits = [[0.5, 2, -0.5, -1], [5, 14, -5, 0].map((value) => value / 2)] as const
    for (const [row, target] of [1, 3].entries()) {
      const z = logits[row] as readonly number[]
      const total = Math.log(z.reduce((sum, value) => sum + Math.exp(value), 0))
      expect(toArray(logprobs)[row]).toBeCloseTo((z[target] as number) - total, 5)
      expect(toArray(entropy as Tensor)[row]).toBeCloseTo(-z.reduce((sum, value) => sum + Math.exp(value - total) * (value - total), 0), 5)
    }
    const packed = packWeight(weight)
    expect(toArray(lmHead(hidden, weight, targets, temperature, { packed }).logprobs)).toEqual(toArray(logprobs))
    packed.dispose()
  })
})

test('a gradient through the entropy is refused, not lost; one of the log-probabilities alone is not', () => {
  scope(() => {
    const { hidden, weight, targets, temperature } = inputs()
    const run = (seedOf: (logprobs: Tensor, entropy: Tensor) => Tensor) =>
      record((tape) => {
        const { logprobs, entropy } = lmHead(tape.watch(hidden), weight, targets, temperature, { hasEntropy: true })
        const output = seedOf(logprobs, entropy as Tensor)
        tape.backward([{ output, gradient: fromArray('f32', [2], [1, 1]) }])
      })
    expect(() => run((_, entropy) => entropy)).toThrowError(expect.objectContaining({ path: 'lmHead.entropy' }))
    run((logprobs) => logprobs)
  })
})

test('targets outside the vocabulary are refused with their row', () => {
  scope(() => {
    const { hidden, weight, temperature } = inputs()
    expect(() => lmHead(hidden, weight, fromArray('i32', [2], [0, 4]), temperature)).toThrowError(
      expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID', path: 'lm-head.forward.targets' }),
    )
  })
})
