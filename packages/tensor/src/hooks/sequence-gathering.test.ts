import { expect, test } from 'vitest'
import { fromArray, liveTensors, localSequence, scope } from '../index.ts'

test('S1: the rows of the one rank are all rows', () => {
  expect(localSequence.rows(7)).toEqual([{ begin: 0, end: 7 }])
  expect(localSequence.rows(0)).toEqual([])
  expect([localSequence.rank, localSequence.ranks]).toEqual([0, 1])
})

test('S2, S4, S5: keys are returned as they are; another number of rows is refused', () => {
  scope(() => {
    const x = fromArray('f32', [2, 1], [1, 2])
    expect(localSequence.keys(x, 2)).toBe(x)
    expect(() => localSequence.keys(x, 3)).toThrowError(expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID', path: 'keys.x' }))
  })
  expect(liveTensors().tensors).toBe(0)
})
