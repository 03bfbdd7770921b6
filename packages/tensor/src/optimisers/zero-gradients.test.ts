import { afterEach, expect, test } from 'vitest'
import { fromArray, liveTensors, scope } from '../index.ts'
import { countZeroGradients } from './zero-gradients.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const graded = (values: readonly number[] | null, { isTrainable = true, dtype = 'f32' as 'f32' | 'f64', count = 4 } = {}) => ({
  isTrainable,
  elements: values?.length ?? count,
  gradient: values === null ? null : fromArray(dtype, [values.length], values),
})

test('zeros of both signs count, what is small or not finite does not', () => {
  scope(() => {
    const smallest = 2 ** -149
    const values = [0, -0, smallest, -smallest, 1, Number.NaN, Number.NEGATIVE_INFINITY]
    expect(countZeroGradients([graded(values)])).toEqual({ zeros: 2, elements: 7 })
    expect(countZeroGradients([graded([0, 1e-300, -0], { dtype: 'f64' })])).toEqual({ zeros: 2, elements: 3 })
  })
})

test('a trained parameter without a gradient is zero throughout; one that is not trained does not count', () => {
  scope(() => {
    const parameters = [graded([1, 0, 2]), graded(null), graded([0, 0], { isTrainable: false })]
    expect(countZeroGradients(parameters)).toEqual({ zeros: 5, elements: 7 })
    expect(countZeroGradients([])).toEqual({ zeros: 0, elements: 0 })
  })
})

test('a gradient of more elements than come to the host at a time', () => {
  scope(() => {
    for (const size of [65535, 65536, 65537, 200_003]) {
      const values = Array.from({ length: size }, (_, index) => (index % 3 === 0 || index === size - 1 ? 0 : index))
      const zeros = values.filter((value) => value === 0).length
      expect(countZeroGradients([graded(values)])).toEqual({ zeros, elements: size })
    }
  })
})
