import { afterEach, expect, test } from 'vitest'
import { randomTensor } from '../../test/random-tensor.ts'
import { attention, fromArray, liveTensors, packDocuments, pagedAttention, record, scope, slice, type Tensor, toArray } from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const random = (shape: readonly number[], name: string) => randomTensor(shape, name, 6)

const ids = (...values: readonly number[]) => fromArray('i32', [values.length], values)

test('packed documents are each alone, bit for bit', () => {
  scope(() => {
    const [q, k, v] = [random([7, 4, 8], 'q'), random([7, 2, 8], 'k'), random([7, 2, 8], 'v')] as const
    const packed = attention(q, k, v, packDocuments([4, 3]), 0.3)
    for (const [begin, end] of [
      [0, 4],
      [4, 7],
    ] as const) {
      const part = (tensor: Tensor) => slice(tensor, 0, begin, end)
      expect(toArray(attention(part(q), part(k), part(v), packDocuments([end - begin]), 0.3))).toEqual(toArray(part(packed)))
    }
  })
})

test('over pages, at any chunking, it is the packed forward bit for bit', () => {
  scope(() => {
    const [q, k, v] = [random([6, 2, 8], 'q'), random([6, 1, 8], 'k'), random([6, 1, 8], 'v')] as const
    const packed = attention(q, k, v, packDocuments([6]), 0.3)
    // Keys 0, 1 in page 2, keys 2, 3 in page 0, keys 4, 5 in page 1.
    const pages = (rows: Tensor) =>
      fromArray('f32', [3, 2, 1, 8], [...toArray(rows).slice(16, 48), ...toArray(rows).slice(0, 16)] as number[])
    const [kPages, vPages] = [pages(k), pages(v)]
    for (const chunk of [1, 2, 5])
      for (let begin = 0; begin < 6; begin += chunk) {
        const end = Math.min(6, begin + chunk)
        const sequences = { queryStarts: ids(0, end - begin), contextLengths: ids(end), blockTable: fromArray('i32', [1, 3], [2, 0, 1]) }
        const part = pagedAttention(slice(q, 0, begin, end), kPages, vPages, sequences, 0.3)
        expect(toArray(part)).toEqual(toArray(slice(packed, 0, begin, end)))
      }
    record((tape) => {
      const sequences = { queryStarts: ids(0, 1), contextLengths: ids(1), blockTable: fromArray('i32', [1, 1], [0]) }
      expect(() => pagedAttention(tape.watch(random([1, 2, 8], 'q')), kPages, vPages, sequences, 0.3)).toThrowError(
        expect.objectContaining({ path: 'pagedAttention.q' }),
      )
    })
  })
})
