import type { Storage } from '@trilithon/core'
import { afterEach, describe, expect, test } from 'vitest'
import { CounterRandom, createQuantiser, fromArray, liveTensors, normal, record, scope, type Tensor, toArray, zeros } from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const refusal = (path: string, code = 'NATIVE_ARGUMENT_INVALID') => expect.objectContaining({ code, path })

/** Each format with the largest relative error of one element. */
const formats: readonly (readonly [Storage, number])[] = [
  [{ dtype: 'float32' }, 0],
  [{ dtype: 'bfloat16' }, 2 ** -8],
  [{ dtype: 'float8_e4m3', scaleBlock: [1, 128] }, 2 ** -3],
  [{ dtype: 'float8_e4m3', scaleBlock: [128, 128] }, 2 ** -3],
]

function matrix(shape: readonly number[]): Tensor {
  const values = new Float32Array(shape.reduce((count, size) => count * size, 1))
  normal(1).fill(values, 1, 'matrix', 0)
  return fromArray('f32', shape, values)
}

describe.each(formats)('%o', (storage, error) => {
  const quantiser = createQuantiser(storage)

  test('N1, N2: equal bits in, equal bits out; shapes return, values are close', () => {
    scope(() => {
      for (const shape of [
        [3, 130],
        [129, 5],
        [2, 131, 7],
      ]) {
        const x = matrix(shape)
        const quantised = quantiser.quantise(x)
        const again = quantiser.quantise(x)
        expect(toArray(again.codes)).toEqual(toArray(quantised.codes))
        const y = quantiser.dequantise(quantised)
        expect([y.dtype, y.shape]).toEqual(['f32', shape])
        const largest = Math.max(...(toArray(x) as Float32Array).map(Math.abs))
        for (const [index, value] of (toArray(y) as Float32Array).entries())
          expect(Math.abs(value - Number(toArray(x)[index]))).toBeLessThanOrEqual(error * largest)
      }
    })
  })

  test('N4: zeros stay zeros, scales stay above 0', () => {
    scope(() => {
      const quantised = quantiser.quantise(zeros('f32', [130, 130]))
      expect((toArray(quantiser.dequantise(quantised)) as Float32Array).every((value) => value === 0)).toBe(true)
      if (quantised.scales !== null) expect((toArray(quantised.scales) as Float32Array).every((scale) => scale > 0)).toBe(true)
    })
  })

  test('N6: a tensor that is recorded is refused', () => {
    scope(() =>
      record((tape) => {
        const x = tape.watch(matrix([2, 128]))
        expect(() => quantiser.quantise(x)).toThrowError(expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID' }))
      }),
    )
  })
})

test('N1: each matrix of a stack has the codes that it has alone', () => {
  scope(() => {
    const quantiser = createQuantiser({ dtype: 'float8_e4m3', scaleBlock: [128, 128] })
    const values = toArray(matrix([2, 5, 130])) as Float32Array
    const { codes, scales } = quantiser.quantise(fromArray('f32', [2, 5, 130], values))
    for (const index of [0, 1]) {
      const alone = quantiser.quantise(fromArray('f32', [5, 130], values.slice(650 * index, 650 * (index + 1))))
      expect(toArray(alone.codes)).toEqual(toArray(codes).slice(650 * index, 650 * (index + 1)))
      expect(toArray(alone.scales as Tensor)).toEqual(toArray(scales as Tensor).slice(2 * index, 2 * (index + 1)))
    }
  })
})

test('N3: plain formats are fixed points', () => {
  scope(() => {
    for (const dtype of ['float32', 'bfloat16'] as const) {
      const quantiser = createQuantiser({ dtype })
      const random = new CounterRandom(2, dtype)
      const x = fromArray(
        'f32',
        [50],
        Array.from({ length: 50 }, (_, i) => random.uniform(i) * 10 ** ((i % 9) - 4)),
      )
      const first = quantiser.quantise(x)
      const second = quantiser.quantise(quantiser.dequantise(first))
      expect(toArray(second.codes)).toEqual(toArray(first.codes))
      if (dtype === 'float32') expect(toArray(first.codes)).toEqual(toArray(x))
    }
  })
})

test('N5: formats that cannot be computed are refused when the handle is made', () => {
  const unavailable = refusal('createQuantiser.storage.scaleBlock', 'KERNEL_UNAVAILABLE')
  expect(() => createQuantiser({ dtype: 'float8_e4m3' })).toThrowError(unavailable)
  expect(() => createQuantiser({ dtype: 'float8_e4m3', scaleBlock: [64, 128] })).toThrowError(unavailable)
  expect(() => createQuantiser({ dtype: 'bfloat16', scaleBlock: [128, 128] })).toThrowError(unavailable)
  scope(() => {
    const blocks = createQuantiser({ dtype: 'float8_e4m3', scaleBlock: [1, 128] })
    expect(() => blocks.quantise(matrix([4]))).toThrowError(refusal('quantise.x'))
    expect(() => blocks.dequantise({ codes: matrix([4, 4]), scales: null })).toThrowError(refusal('dequantise.scales'))
    expect(() => createQuantiser({ dtype: 'float32' }).quantise(zeros('f64', [1]))).toThrowError(refusal('quantise.x'))
  })
})
