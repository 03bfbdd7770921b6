import { createHash } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import {
  appendToPages,
  fromArray,
  fromShared,
  gatherBlocks,
  kvBlockHashes,
  kvRootHash,
  liveTensors,
  record,
  scatterBlocks,
  scope,
  sha256,
  toArray,
  zeros,
} from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const ids = (...values: readonly number[]) => fromArray('i32', [values.length], values)

test('new rows go to their places in pages; blocks move to shared memory and back', () => {
  scope(() => {
    const pages = zeros('f32', [3, 2, 1])
    const sequences = { queryStarts: ids(0, 3), contextLengths: ids(4), blockTable: fromArray('i32', [1, 2], [2, 0]) }
    appendToPages(fromArray('f32', [3, 1], [5, 6, 7]), pages, sequences)
    expect([...toArray(pages)]).toEqual([6, 7, 0, 0, 0, 5])
    expect(pages.writes).toBe(1)
    const slots = fromShared('u8', [2, 8], new Uint8Array(new SharedArrayBuffer(16)))
    const parts = fromArray('f32', [1, 3, 2], toArray(pages))
    gatherBlocks(parts, ids(2, 0), slots, 0)
    const other = zeros('f32', [1, 3, 2])
    scatterBlocks(slots, ids(0, 1), other, 0)
    expect([...toArray(other)]).toEqual([0, 5, 6, 7, 0, 0])
    record((tape) => {
      expect(() => appendToPages(tape.watch(zeros('f32', [3, 1])), pages, sequences)).toThrowError(
        expect.objectContaining({ path: 'appendToPages.rows' }),
      )
    })
  })
})

test('names of blocks are what SHA-256 of their parts is', () => {
  const root = kvRootHash({ salt: 'v3', profile: 'fp32', format: 'model/f32', tenant: 'über' })
  const hash = createHash('sha256')
  for (const field of ['v3', 'fp32', 'model/f32', 'über']) {
    const bytes = Buffer.from(field)
    hash.update(Buffer.from(Uint32Array.of(bytes.length).buffer)).update(bytes)
  }
  expect(Buffer.from(root)).toEqual(hash.digest())
  const blocks = kvBlockHashes(root, Int32Array.of(1, 2, 3, 4, 5), 2)
  const second = createHash('sha256')
    .update(blocks[0] as Uint8Array)
    .update(Buffer.from(Int32Array.of(3, 4).buffer))
    .digest()
  expect(blocks.map((block) => Buffer.from(block))).toEqual([expect.any(Buffer), second])
  for (const length of [0, 1, 64]) {
    const bytes = new Uint8Array(length).fill(7)
    expect(Buffer.from(sha256(bytes))).toEqual(createHash('sha256').update(bytes).digest())
  }
  expect(kvBlockHashes(root, Int32Array.of(1), 2)).toEqual([])
  expect(() => kvBlockHashes(root, Int32Array.of(-1, 2), 2)).toThrowError(
    expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID', path: 'block-hash.chain.tokens' }),
  )
})
