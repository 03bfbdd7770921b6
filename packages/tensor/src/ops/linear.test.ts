import { afterEach, expect, test } from 'vitest'
import {
  expertLinear,
  fromArray,
  linear,
  liveTensors,
  normal,
  Parameter,
  packWeight,
  record,
  reshape,
  scope,
  slice,
  type Tensor,
  toArray,
  write,
  zeros,
} from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

function matrix(rows: number, columns: number, name: string): Tensor {
  const values = new Float32Array(rows * columns)
  normal(1).fill(values, 4, name, 0)
  return fromArray('f32', [rows, columns], values)
}

test('a packed weight gives the same bits, forwards and backwards', () => {
  scope(() => {
    const weight = matrix(70, 37, 'weight')
    const packed = packWeight(weight, true)
    const run = (options: Parameters<typeof linear>[2]) =>
      record((tape) => {
        const x = tape.watch(matrix(5, 37, 'x'))
        const output = linear(x, tape.watch(weight), options)
        tape.backward([{ output, gradient: matrix(5, 70, 'gradient') }])
        return [output, tape.gradient(x) as Tensor, tape.gradient(weight) as Tensor].map((tensor) => toArray(tensor))
      })
    expect(run({ packed })).toEqual(run({}))
    packed.dispose()
  })
})

test('experts: a packed weight gives the same bits; each row is that of its expert alone; no rows are allowed', () => {
  scope(() => {
    const stack = reshape(matrix(3 * 40, 37, 'experts'), [3, 40, 37])
    const starts = (...values: number[]) => fromArray('i32', [values.length], values)
    const packed = packWeight(stack, true)
    const run = (layout: typeof packed | null) =>
      record((tape) => {
        const x = tape.watch(matrix(5, 37, 'x'))
        const output = expertLinear(x, tape.watch(stack), starts(0, 2, 2, 5), layout)
        tape.backward([{ output, gradient: matrix(5, 40, 'gradient') }])
        return [output, tape.gradient(x) as Tensor, tape.gradient(stack) as Tensor].map((tensor) => toArray(tensor))
      })
    const [y, ...gradients] = run(null)
    expect(run(packed)).toEqual([y, ...gradients])
    const third = reshape(slice(stack, 0, 2, 3), [40, 37])
    expect(toArray(linear(slice(matrix(5, 37, 'x'), 0, 2, 5), third))).toEqual(y?.slice(80))
    expect(expertLinear(zeros('f32', [0, 37]), stack, starts(0, 0, 0, 0)).shape).toEqual([0, 40])
    packed.dispose()
  })
})

test('a stale layout, and that of another weight, are refused', () => {
  scope(() => {
    const weight = matrix(4, 3, 'weight')
    const packed = packWeight(weight)
    const x = matrix(2, 3, 'x')
    linear(x, weight, { packed })
    const refusal = (given: string) => expect.objectContaining({ path: 'linear.packed', details: expect.objectContaining({ given }) })
    expect(() => linear(x, matrix(4, 3, 'other'), { packed })).toThrowError(refusal('that of another, f32 [4, 3]'))
    write(weight, new Float32Array(12))
    expect(() => linear(x, weight, { packed })).toThrowError(refusal('one that is 1 writes behind'))
    packed.dispose()
  })
})

test('gradients of micro-batches add up to the bits of the whole batch', () => {
  const weight = new Parameter({ name: 'weight', shape: [4, 3], initialiser: normal(1) }).initialise(2)
  const gradientOf = (parts: readonly (readonly [number, number])[]) => {
    for (const [begin, end] of parts)
      scope(() =>
        record((tape) => {
          const output = linear(slice(matrix(6, 3, 'x'), 0, begin, end), weight.value)
          tape.backward([{ output, gradient: slice(matrix(6, 4, 'gradient'), 0, begin, end) }])
        }),
      )
    const values = toArray(weight.gradient as Tensor)
    weight.zeroGradient()
    return values
  }
  const whole = gradientOf([[0, 6]])
  const parts = [
    [0, 1],
    [1, 4],
    [4, 6],
  ] as const
  expect(gradientOf(parts)).toEqual(whole)
  weight.dispose()
})
