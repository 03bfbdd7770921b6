import assert from 'node:assert/strict'
import { describeKVStore, fakeBlock, fakeExperts, fakeKey } from '@trilithon/testing'
import { describe, it } from 'vitest'
import { corruptStored } from '../test/corrupt-stored.ts'
import { run } from '../test/create-alone.ts'
import { MemoryKVStore, memoryKVStore } from './memory-kv-store.ts'

describeKVStore('memory KV store', (capacityBytes) => {
  const store = new MemoryKVStore(capacityBytes)
  return { store, corrupt: (key) => corruptStored(store, key) }
})

describe('memory KV store', () => {
  it('never says not-yet: what put was given is there when it returns', () => {
    const store = new MemoryKVStore(1000)
    const putting = store.put([{ key: fakeKey('a'), block: fakeBlock(1) }])
    assert.deepEqual(store.lookup([fakeKey('a'), fakeKey('b')]), ['yes', 'no'])
    return putting
  })

  it('notices corrupt experts as well as corrupt bytes', async () => {
    const store = new MemoryKVStore(1000)
    await store.put([{ key: fakeKey('a'), block: fakeBlock(1, 64, { experts: fakeExperts(1, 4) }) }])
    corruptStored(store, fakeKey('a'), 'experts')
    assert.deepEqual(await store.get([{ key: fakeKey('a'), into: new Uint8Array(64) }]), [{ status: 'miss', reason: 'corrupt' }])
    assert.equal(store.stats().bytes, 0)
  })

  // known-faults 100, smaller: 512 concurrent puts of 32 blocks, a twentieth of the calls with a bad checksum.
  it('answers 512 concurrent puts, the bad ones with an error and the others in full', async () => {
    const store = new MemoryKVStore(1000 * 256)
    const blocks = Array.from({ length: 32 }, (_, index) => fakeBlock(index, 256))
    const [bad = blocks[0]] = blocks.map((block) => ({ ...block, checksum: block.checksum ^ 1 }))
    const calls = Array.from({ length: 512 }, (_, call) =>
      store.put(
        blocks.map((block, index) => ({
          key: fakeKey(`${call}.${index}`),
          block: call % 20 === 0 && index === 31 ? (bad ?? block) : block,
        })),
      ),
    )
    const results = await Promise.allSettled(calls)
    assert.equal(results.filter(({ status }) => status === 'rejected').length, 26)
    for (const result of results) if (result.status === 'fulfilled') assert.ok(result.value.every(({ status }) => status === 'stored'))
    assert.deepEqual([store.stats().blocks, store.stats().bytes], [1000, 1000 * 256])
  })

  it('refuses a disk tier in words, with what to do', () => {
    const problems = (table: unknown) => {
      const keys = memoryKVStore.claims[0].keys.parse(table)
      return [...(memoryKVStore.check?.({ config: { 'inference.kv_cache_offload': keys }, run, peer: () => undefined }) ?? [])]
    }
    assert.deepEqual(problems({ cpu: { num_bytes: 1 } }), [])
    assert.deepEqual(problems({ cpu: { num_bytes: 1 }, disk: null }), [])
    assert.deepEqual(problems({ cpu: { num_bytes: 1 }, disk: { path: '/scratch' } }), [
      {
        message: 'The disk tier of the native KV store is not built yet; only main memory is.',
        path: 'inference.kv_cache_offload.disk',
        hint: 'Remove the table [inference.kv_cache_offload.disk].',
      },
    ])
  })

  it('refuses budgets that are no number of bytes', () => {
    const { keys } = memoryKVStore.claims[0]
    for (const num_bytes of [0, -1, 1.5, '1e9', Number.POSITIVE_INFINITY, null]) assert.ok(!keys.safeParse({ cpu: { num_bytes } }).success)
    for (const table of [{}, { cpu: {} }, { cpu: { num_bytes: 1, num_blocks: 1 } }, { cpu: { num_bytes: 1 }, disk: {} }])
      assert.ok(!keys.safeParse(table).success)
  })
})
