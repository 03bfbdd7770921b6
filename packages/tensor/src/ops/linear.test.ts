import { afterEach, expect, test } from 'vitest'
import {
  fromArray,
  linear,
  liveTensors,
  normal,
  Parameter,
  packWeight,
  record,
  scope,
  slice,
  type Tensor,
  toArray,
  write,
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
