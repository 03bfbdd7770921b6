import { afterEach, expect, test } from 'vitest'
import { randomTensor } from '../../test/random-tensor.ts'
import {
  chooseKeys,
  choosePagedKeys,
  fromArray,
  indexScores,
  liveTensors,
  packDocuments,
  scope,
  slice,
  type Tensor,
  toArray,
} from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const random = (shape: readonly number[], name: string) => randomTensor(shape, name, 3)

const ids = (shape: readonly number[], values: readonly number[]) => fromArray('i32', shape, values)
const rows = () => ({ q: random([6, 2, 4], 'q'), k: random([6, 4], 'k'), weights: random([6, 2], 'weights') })

/** The chosen positions of each row. */
const listsOf = ({ indices, counts }: { indices: Tensor; counts: Tensor }) => {
  const all = [...toArray(indices)].map(Number)
  const width = indices.dim(1)
  return [...toArray(counts)].map((count, row) => all.slice(row * width, row * width + Number(count)))
}

test('chosen keys are the best, ascending, none beyond the query; over pages they are the same', () => {
  scope(() => {
    const packed = listsOf(chooseKeys(rows(), packDocuments([6]), 3, 1))
    expect(packed.slice(0, 3)).toEqual([[0], [0, 1], [0, 1, 2]])
    const every = ids(
      [6, 6],
      Array.from({ length: 36 }, (_, index) => index % 6),
    )
    const scores = toArray(indexScores(rows(), packDocuments([6]), { indices: every, counts: ids([6], [1, 2, 3, 4, 5, 6]) }, 1))
    for (const [row, list] of packed.entries()) {
      const own = [...scores].slice(row * 6, row * 6 + row + 1).map(Number)
      const best = own.map((score, index) => ({ score, index })).sort((a, b) => b.score - a.score || a.index - b.index)
      const expected = best.slice(0, 3).map(({ index }) => index)
      expect(list).toEqual(expected.sort((a, b) => a - b))
    }
    // Keys 0 to 2 in page 1, keys 3 to 5 in page 0.
    const k = toArray(rows().k) as Float32Array
    const pages = fromArray('f32', [2, 3, 4], Float32Array.of(...k.slice(12), ...k.slice(0, 12)))
    for (const [begin, end] of [
      [0, 2],
      [2, 6],
    ] as const) {
      const { q, weights } = rows()
      const sequences = { queryStarts: ids([2], [0, end - begin]), contextLengths: ids([1], [end]), blockTable: ids([1, 2], [1, 0]) }
      const part = { q: slice(q, 0, begin, end), k: pages, weights: slice(weights, 0, begin, end) }
      expect(listsOf(choosePagedKeys(part, sequences, 3, 1))).toEqual(packed.slice(begin, end))
    }
  })
})

test('ties go to the lower position', () => {
  scope(() => {
    const equal = {
      q: fromArray('f32', [3, 1, 1], [1, 1, 1]),
      k: fromArray('f32', [3, 1], [2, 2, 2]),
      weights: fromArray('f32', [3, 1], [1, 1, 1]),
    }
    expect(listsOf(chooseKeys(equal, packDocuments([3]), 2, 1))).toEqual([[0], [0, 1], [0, 1]])
  })
})
