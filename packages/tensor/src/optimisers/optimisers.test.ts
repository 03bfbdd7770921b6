import { afterEach, describe, expect, test } from 'vitest'
import {
  createAdamW,
  createMuon,
  createSgd,
  createSignSgd,
  fromArray,
  gradientNorm,
  linear,
  liveTensors,
  normal,
  type Optimiser,
  Parameter,
  record,
  scope,
  type Tensor,
  type Trainable,
  toArray,
  write,
} from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const makers: Readonly<Record<string, (parameters: Iterable<Trainable>) => Optimiser>> = {
  adamw: (parameters) => createAdamW(parameters, { weightDecay: 0.1, beta1: 0.9, beta2: 0.95 }),
  sgd: (parameters) => createSgd(parameters, { weightDecay: 0.1, momentum: 0.9, isNesterov: true }),
  'sgd without momentum': (parameters) => createSgd(parameters, { weightDecay: 0, momentum: 0, isNesterov: false }),
  muon: (parameters) => createMuon(parameters, { weightDecay: 0, momentum: 0.95, adamw: { beta1: 0.9, beta2: 0.95 } }),
  'sign sgd': (parameters) => createSignSgd(parameters, { weightDecay: 0 }),
}

const trained = () => new Parameter({ name: 'weight', shape: [3, 2], initialiser: normal(1) }).initialise(1)

/** The gradient of Σ (x · weightᵀ - target)² / 2 for fixed rows x; returns the loss. */
function backward(weight: Parameter): number {
  return scope(() =>
    record((tape) => {
      const output = linear(fromArray('f32', [4, 2], [1, 2, -1, 1, 0, 3, 2, -1]), weight.value)
      const difference = (toArray(output) as Float32Array).map((value, index) => value - (index % 3))
      tape.backward([{ output, gradient: fromArray('f32', [4, 3], difference) }])
      return difference.reduce((sum, value) => sum + value * value, 0) / 2
    }),
  )
}

describe.each(Object.entries(makers))('%s', (_, make) => {
  test('a loss falls, steps leave nothing behind, frozen parameters have no state', () => {
    const weight = trained()
    const frozen = new Parameter({ name: 'frozen', shape: [2], isTrainable: false }).initialise(1)
    const optimiser = make([weight, frozen])
    expect(optimiser.states.some(({ name }) => name.includes('frozen'))).toBe(false)
    const first = backward(weight)
    const { tensors, bytes } = liveTensors()
    let last = first
    for (let step = 0; step < 60; step++) {
      optimiser.step({ learningRate: 0.02 })
      weight.zeroGradient()
      last = backward(weight)
    }
    expect(liveTensors()).toMatchObject({ tensors, bytes })
    expect(last).toBeLessThan(0.8 * first)
    expect([...toArray(frozen.value)]).toEqual([0, 0])
    for (const owner of [optimiser, weight, frozen]) owner.dispose()
  })

  test('saved and restored state goes on with the same bits', () => {
    const run = (weight: Parameter, optimiser: Optimiser, steps: number) => {
      for (let step = 0; step < steps; step++) {
        weight.zeroGradient()
        backward(weight)
        optimiser.step({ learningRate: 0.02, gradientScale: 0.5 })
      }
      return toArray(weight.value)
    }
    const weight = trained()
    const optimiser = make([weight])
    run(weight, optimiser, 3)
    const saved = optimiser.states.map(({ name, tensor }) => ({ name, values: toArray(tensor) }))
    const restoredWeight = new Parameter({ name: 'weight', shape: [3, 2] }).initialise(0)
    write(restoredWeight.value, toArray(weight.value))
    const restored = make([restoredWeight])
    expect(restored.states.map(({ name }) => name)).toEqual(saved.map(({ name }) => name))
    for (const [index, { tensor }] of restored.states.entries()) write(tensor, saved[index]?.values ?? [])
    expect(run(restoredWeight, restored, 3)).toEqual(run(weight, optimiser, 3))
    for (const owner of [optimiser, weight, restored, restoredWeight]) owner.dispose()
  })

  test('a step between forward and backward is noticed', () => {
    const weight = trained()
    const optimiser = make([weight])
    backward(weight)
    expect(() =>
      scope(() =>
        record((tape) => {
          const x = tape.watch(fromArray('f32', [1, 2], [1, 2]))
          const output = linear(x, weight.value)
          optimiser.step({ learningRate: 0.1 })
          tape.backward([{ output, gradient: fromArray('f32', [1, 3], [1, 1, 1]) }])
        }),
      ),
    ).toThrowError(expect.objectContaining({ path: 'linear.backward' }))
    optimiser.dispose()
    weight.dispose()
  })
})

test('AdamW is the formula', () => {
  scope(() => {
    const value = fromArray('f64', [1], [0.8])
    const trainable: { -readonly [Key in keyof Trainable]: Trainable[Key] } = { name: 'weight', isTrainable: true, value, gradient: null }
    const optimiser = createAdamW([trainable], { weightDecay: 0.1, beta1: 0.9, beta2: 0.99, epsilon: 1e-6 })
    let expected = 0.8
    let [mean, square] = [0, 0]
    for (const [index, gradient] of [0.3, -2, 0].entries()) {
      // The last one is missing, which counts as 0.
      trainable.gradient = gradient === 0 ? null : fromArray('f64', [1], [gradient])
      optimiser.step({ learningRate: 0.01, gradientScale: 0.5 })
      const scaled = gradient * 0.5
      mean += 0.1 * (scaled - mean)
      square += 0.01 * (scaled * scaled - square)
      expected -= 0.01 * 0.1 * expected
      expected -= ((0.01 / (1 - 0.9 ** (index + 1))) * mean) / (Math.sqrt(square / (1 - 0.99 ** (index + 1))) + 1e-6)
      expect(toArray(value)[0]).toBeCloseTo(expected, 12)
    }
    trainable.gradient = fromArray('f64', [2], [1, 2])
    expect(() => optimiser.step({ learningRate: 0.01 })).toThrowError(
      expect.objectContaining({
        code: 'NATIVE_ARGUMENT_INVALID',
        path: 'step.weight',
        details: expect.objectContaining({ given: 'f64 [2]' }),
      }),
    )
    optimiser.dispose()
  })
})

test('Muon makes the update of a matrix orthogonal and leaves embedding, head and vectors to Adam', () => {
  scope(() => {
    const trainable = (name: string, shape: readonly number[], values: readonly number[]): Trainable => ({
      name,
      isTrainable: true,
      value: fromArray('f64', shape, new Float64Array(values.length)),
      gradient: fromArray('f64', shape, values),
    })
    const matrix = trainable('layers.0.up', [2, 2], [3, 1, 0, 2])
    const head = trainable('lm_head.weight', [2, 2], [3, 1, 0, 2])
    const optimiser = createMuon([matrix, head, trainable('norm', [2], [1, 2])], {
      weightDecay: 0,
      momentum: 0.9,
      adamw: { beta1: 0.9, beta2: 0.9 },
    })
    expect(optimiser.states.map(({ name }) => name)).toEqual([
      'muon.velocity.layers.0.up',
      ...['adamw.mean.lm_head.weight', 'adamw.mean.norm', 'adamw.square.lm_head.weight', 'adamw.square.norm', 'adamw.steps'],
    ])
    optimiser.step({ learningRate: 1 })
    const [a, b, c, d] = [...toArray(matrix.value)].map((value) => Number(value) / (0.2 * Math.sqrt(2))) as [number, number, number, number]
    // Rows of length near 1 that stand at a right angle, as Newton-Schulz with dion's coefficients gives them.
    expect(Math.abs(Math.hypot(a, b) - 1)).toBeLessThan(0.35)
    expect(Math.abs(a * c + b * d)).toBeLessThan(0.35)
    expect([...toArray(head.value)][1]).toBeCloseTo(-1, 6)
    optimiser.dispose()
  })
})

test('the norm of all gradients, the scale that clips it, and what is not finite', () => {
  scope(() => {
    const gradients = (...lists: (readonly number[])[]) =>
      lists.map((values): { gradient: Tensor | null } => ({
        gradient: values.length === 0 ? null : fromArray('f32', [values.length], values),
      }))
    const { norm, scale, notFinite } = gradientNorm(gradients([3], [], [0, 4]), 1)
    expect([norm, scale, notFinite]).toEqual([5, expect.closeTo(0.2, 6), 0])
    expect(gradientNorm(gradients([3], [4]), null).scale).toBe(1)
    expect(gradientNorm(gradients([3], [4]), 100).scale).toBe(1)
    expect(gradientNorm(gradients([3, Number.NaN], [Number.POSITIVE_INFINITY]), 1).notFinite).toBe(2)
    expect(gradientNorm([], 1)).toEqual({ norm: 0, scale: 1, notFinite: 0 })
  })
})
