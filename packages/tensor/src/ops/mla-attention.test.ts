import { afterEach, expect, test } from 'vitest'
import { randomTensor } from '../../test/random-tensor.ts'
import {
  type ChosenKeys,
  fromArray,
  latentAttention,
  liveTensors,
  packDocuments,
  pagedLatentAttention,
  record,
  scope,
  slice,
  type Tensor,
  toArray,
} from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const random = (shape: readonly number[], name: string) => randomTensor(shape, name, 8)

const ids = (shape: readonly number[], values: readonly number[]) => fromArray('i32', shape, values)
const queries = () => ({ latent: random([4, 2, 8], 'q'), rotary: random([4, 2, 4], 'q rotary') })
const keys = () => ({ latent: random([4, 8], 'latent'), rotary: random([4, 4], 'rotary') })

test('a list of every key gives the bits of no list', () => {
  scope(() => {
    const every: ChosenKeys = {
      indices: ids([4, 4], [0, -1, -1, -1, 0, 1, -1, -1, 0, 1, 2, -1, 0, 1, 2, 3]),
      counts: ids([4], [1, 2, 3, 4]),
    }
    const all = latentAttention(queries(), keys(), packDocuments([4]), null, 0.3)
    expect(toArray(latentAttention(queries(), keys(), packDocuments([4]), every, 0.3))).toEqual(toArray(all))
  })
})

test('over pages, at any chunking and with chosen keys, it is the packed forward bit for bit', () => {
  scope(() => {
    const chosen = { indices: ids([4, 2], [0, -1, 0, 1, 1, 2, 0, 3]), counts: ids([4], [1, 2, 2, 2]) }
    const packed = latentAttention(queries(), keys(), packDocuments([4]), chosen, 0.3)
    // Keys 0, 1 in page 1, keys 2, 3 in page 0.
    const pagesOf = (rows: Tensor, width: number) => {
      const values = toArray(rows) as Float32Array
      return fromArray('f32', [2, 2, width], Float32Array.of(...values.slice(2 * width), ...values.slice(0, 2 * width)))
    }
    const pages = { latent: pagesOf(keys().latent, 8), rotary: pagesOf(keys().rotary, 4) }
    for (const [begin, end] of [
      [0, 1],
      [1, 4],
      [0, 4],
    ] as const) {
      const part = (tensor: Tensor) => slice(tensor, 0, begin, end)
      const q = queries()
      const sequences = {
        queryStarts: ids([2], [0, end - begin]),
        contextLengths: ids([1], [end]),
        blockTable: ids([1, 2], [1, 0]),
      }
      const out = pagedLatentAttention(
        { latent: part(q.latent), rotary: part(q.rotary) },
        pages,
        sequences,
        { indices: part(chosen.indices), counts: part(chosen.counts) },
        0.3,
      )
      expect(toArray(out)).toEqual(toArray(part(packed)))
    }
  })
})

test('a list that is not ascending is refused with its query; paged attention refuses to be recorded', () => {
  scope(() => {
    const wrong = { indices: ids([4, 2], [0, -1, 0, 1, 2, 1, 0, 3]), counts: ids([4], [1, 2, 2, 2]) }
    expect(() => latentAttention(queries(), keys(), packDocuments([4]), wrong, 0.3)).toThrowError(
      expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID', path: 'mla-attention.forward.indices' }),
    )
    const sequences = { queryStarts: ids([2], [0, 4]), contextLengths: ids([1], [4]), blockTable: ids([1, 1], [0]) }
    record((tape) => {
      const q = { latent: tape.watch(queries().latent), rotary: queries().rotary }
      expect(() => pagedLatentAttention(q, keys(), sequences, null, 0.3)).toThrowError(
        expect.objectContaining({ path: 'pagedLatentAttention.q' }),
      )
    })
  })
})
