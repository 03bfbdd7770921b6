import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { KVBlock, KVKey, KVStore } from '@trilithon/core'
import { fakeBlock, fakeExperts, fakeKey } from './fake-kv-block.ts'
import { hasCode } from './has-code.ts'
import { assertHit, assertMiss, fill, type KVStoreContext, putOne, readOne, settledLookup } from './kv-store-context.ts'
import { checkAgainstModel } from './kv-store-property.ts'
import { caseTable } from './suite.ts'

const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((label) => fakeKey(label)) as [KVKey, KVKey, KVKey, KVKey]

/** Which of the keys a `get` would find, asked without using any. */
const present = async (store: KVStore, keys: readonly KVKey[] = [a, b, c, d]) => (await settledLookup(store, keys)).join(' ')

/** A store with room for three blocks of 64 bytes that holds a, b and c, used in that order. */
async function openFull({ open }: KVStoreContext): Promise<KVStore> {
  const { store } = await open(3 * 64)
  await fill(
    store,
    [a, b, c].map((key, index) => ({ key, block: fakeBlock(index) })),
  )
  return store
}

const twin: KVKey = { salt: 'ab', profile: 'ab', format: 'ab', tenant: 'ab', hash: fakeKey('twin').hash }
const lastByteDiffers = twin.hash.map((byte, index) => (index === 31 ? byte ^ 1 : byte))

/** Keys that differ from `twin`, and from each other, in the least that counts. */
const almostTwins: readonly KVKey[] = [
  { ...twin, salt: 'ac' },
  { ...twin, profile: 'ac' },
  { ...twin, format: 'ac' },
  { ...twin, tenant: 'ac' },
  { ...twin, hash: lastByteDiffers },
  { ...twin, salt: 'aba', profile: 'b' },
  { ...twin, profile: 'aba', format: 'b' },
  { ...twin, format: 'aba', tenant: 'b' },
  { ...twin, salt: '', profile: 'abab' },
  { ...twin, tenant: '' },
]

/** The contract of `KVStore` in core, one or more cases per sentence. */
export const kvStoreCases = caseTable<KVStoreContext>()([
  {
    name: 'K1 a block comes back bit for bit, with checksum and versions',
    async run({ open }) {
      const { store } = await open()
      const block = fakeBlock(1, 1000, { versions: { min: 3, max: 7 } })
      await fill(store, [{ key: a, block }])
      await assertHit(store, a, block)
      await assertHit(store, a, block)
    },
  },
  {
    name: 'K1 routed experts come back with their shape and dtype',
    async run({ open }) {
      const { store } = await open()
      for (const [key, dtype] of [
        [a, 'uint8'],
        [b, 'uint16'],
      ] as const) {
        const block = fakeBlock(2, 64, { experts: fakeExperts(5, 16, dtype) })
        await fill(store, [{ key, block }])
        await assertHit(store, key, block)
      }
    },
  },
  {
    name: 'K1 what was returned is the caller’s: changing it changes no block',
    async run({ open }) {
      const { store } = await open()
      const block = fakeBlock(3, 64, { experts: fakeExperts(5, 16), versions: { min: 1, max: 2 } })
      await fill(store, [{ key: a, block }])
      const { answer, slot } = await readOne(store, a, 64)
      assert.ok(answer.status === 'hit')
      slot.fill(0)
      answer.experts?.data.fill(0)
      ;(answer.experts?.shape as number[])[0] = 99
      ;(answer.versions as { max: number }).max = 99
      await assertHit(store, a, block)
    },
  },
  {
    name: 'K1 a slot of a shared buffer is filled, and nothing beside it',
    async run({ open }) {
      const { store } = await open()
      const block = fakeBlock(4)
      await fill(store, [{ key: a, block }])
      const shared = new Uint8Array(new SharedArrayBuffer(192)).fill(1)
      await store.get([{ key: a, into: shared.subarray(64, 128) }])
      const expected = new Uint8Array(192).fill(1)
      expected.set(block.bytes, 64)
      assert.deepEqual(new Uint8Array(shared), expected)
    },
  },
  {
    name: 'K2 keys that differ in one field, or by where a field ends, are different blocks',
    async run({ open }) {
      const { store } = await open()
      const entries = [twin, ...almostTwins].map((key, index) => ({ key, block: fakeBlock(index) }))
      await fill(store, entries.slice(0, 1))
      for (const key of almostTwins) await assertMiss(store, key, 'absent')
      await fill(store, entries.slice(1))
      for (const { key, block } of entries) await assertHit(store, key, block)
    },
  },
  {
    name: 'K3 the first put of a key wins',
    async run({ open }) {
      const { store } = await open()
      const first = fakeBlock(1, 64, { versions: { min: 1, max: 1 } })
      await fill(store, [{ key: a, block: first }])
      assert.deepEqual(await putOne(store, a, fakeBlock(2, 128, { versions: { min: 2, max: 2 } })), { status: 'exists' })
      await assertHit(store, a, first)
      assert.deepEqual([store.stats().blocks, store.stats().bytes], [1, 64])
    },
  },
  {
    name: 'K3 the first of two puts of a key in one call wins',
    async run({ open }) {
      const { store } = await open()
      const answers = await store.put([fakeBlock(1), fakeBlock(2)].map((block) => ({ key: a, block })))
      assert.deepEqual(answers, [{ status: 'stored' }, { status: 'exists' }])
      await assertHit(store, a, fakeBlock(1))
    },
  },
  {
    name: 'K4 the caller may reuse what it gave once put has resolved',
    async run({ open }) {
      const { store } = await open()
      const make = () => fakeBlock(1, 64, { experts: fakeExperts(2, 4) })
      const given = make()
      // Views of node's Buffer: their `slice` shares memory.
      const bytes = Buffer.from(given.bytes)
      const data = Buffer.from(given.experts?.data ?? [])
      const hash = Buffer.from(a.hash)
      const shape = [4, 2, 2]
      const versions = { min: 0, max: 0 }
      await putOne(store, { ...a, hash }, { ...given, bytes, experts: { data, shape, dtype: 'uint8' }, versions })
      for (const reused of [bytes, data, hash]) reused.fill(0)
      shape.length = 0
      versions.max = 5
      await assertHit(store, a, make())
      await assertMiss(store, { ...a, hash: new Uint8Array(32) }, 'absent')
    },
  },
  {
    name: 'K5 a corrupt block is a miss, is removed and leaves the slot unchanged',
    async run({ open }, skip) {
      const { store, corrupt } = await open()
      if (corrupt === undefined) return skip('make gives no hook that corrupts a stored byte')
      await fill(
        store,
        [a, b].map((key) => ({ key, block: fakeBlock(1) })),
      )
      await corrupt(a)
      await assertMiss(store, a, 'corrupt')
      await assertMiss(store, a, 'absent')
      await assertHit(store, b, fakeBlock(1))
      const { blocks, bytes, hits, misses, corrupt: corrupted, evictions } = store.stats()
      assert.deepEqual(
        { blocks, bytes, hits, misses, corrupted, evictions },
        { blocks: 1, bytes: 64, hits: 1, misses: 2, corrupted: 1, evictions: 0 },
      )
    },
  },
  {
    name: 'K5 a key whose block was corrupt can be put again',
    async run({ open }, skip) {
      const { store, corrupt } = await open()
      if (corrupt === undefined) return skip('make gives no hook that corrupts a stored byte')
      await fill(store, [{ key: a, block: fakeBlock(1) }])
      await corrupt(a)
      await assertMiss(store, a, 'corrupt')
      await fill(store, [{ key: a, block: fakeBlock(2) }])
      await assertHit(store, a, fakeBlock(2))
    },
  },
  {
    name: 'K6 a slot of another length is a miss, stays unchanged, and the block is kept',
    async run({ open }) {
      const { store } = await open()
      await fill(store, [{ key: a, block: fakeBlock(1, 64) }])
      for (const length of [0, 63, 65, 128]) await assertMiss(store, a, 'size', length)
      await assertHit(store, a, fakeBlock(1, 64))
      assert.deepEqual([store.stats().misses, store.stats().corrupt], [4, 0])
    },
  },
  {
    name: 'K7 answers come in the order of the requests',
    async run({ open }) {
      const { store } = await open(128)
      const entries = [
        { key: a, block: fakeBlock(1) },
        { key: b, block: fakeBlock(2, 129) },
        { key: a, block: fakeBlock(3) },
        { key: c, block: fakeBlock(4) },
      ]
      const statuses = (await store.put(entries)).map(({ status }) => status)
      assert.deepEqual(statuses, ['stored', 'refused', 'exists', 'stored'])
      assert.deepEqual(await settledLookup(store, [b, a, d, c]), ['no', 'yes', 'no', 'yes'])
      const slots = [64, 64, 32, 64].map((length) => new Uint8Array(length))
      const answers = await store.get([b, c, a, a].map((key, index) => ({ key, into: slots[index] ?? new Uint8Array(0) })))
      assert.deepEqual(
        answers.map((answer) => (answer.status === 'hit' ? 'hit' : answer.reason)),
        ['absent', 'hit', 'size', 'hit'],
      )
      assert.deepEqual([slots[1], slots[3]], [fakeBlock(4).bytes, fakeBlock(1).bytes])
    },
  },
  {
    name: 'K7 an empty list gives an empty list',
    async run({ open }) {
      const { store } = await open()
      assert.deepEqual([store.lookup([]), await store.put([]), await store.get([])], [[], [], []])
    },
  },
  {
    name: 'K8 bytes are the exact sum over stored blocks, experts included',
    async run({ open }) {
      const { store } = await open(1000)
      const { capacityBytes, bytes, blocks } = store.stats()
      assert.deepEqual({ capacityBytes, bytes, blocks }, { capacityBytes: 1000, bytes: 0, blocks: 0 })
      await fill(store, [
        { key: a, block: fakeBlock(1, 100) },
        { key: b, block: fakeBlock(2, 50, { experts: fakeExperts(1, 3, 'uint16') }) },
        { key: c, block: fakeBlock(3, 0) },
      ])
      assert.deepEqual([store.stats().bytes, store.stats().blocks], [100 + 50 + 24, 3])
    },
  },
  {
    name: 'K8 the budget is filled to the byte and never exceeded',
    async run({ open }) {
      const { store } = await open(192)
      await fill(store, [{ key: a, block: fakeBlock(1, 191) }])
      await fill(store, [{ key: b, block: fakeBlock(2, 1) }])
      assert.deepEqual([store.stats().bytes, store.stats().evictions], [192, 0])
      await fill(store, [{ key: c, block: fakeBlock(3, 2) }])
      assert.equal(await present(store), 'no yes yes no')
      assert.deepEqual([store.stats().bytes, store.stats().evictions], [3, 1])
    },
  },
  {
    name: 'K8 a put and a hit are uses: the least recently used goes first',
    async run(context) {
      const store = await openFull(context)
      await assertHit(store, a, fakeBlock(0))
      await fill(store, [{ key: d, block: fakeBlock(3) }])
      assert.equal(await present(store), 'yes no yes yes')
      await fill(store, [{ key: b, block: fakeBlock(1) }])
      assert.equal(await present(store), 'yes yes no yes')
    },
  },
  {
    name: 'K8 an exists is a use',
    async run(context) {
      const store = await openFull(context)
      assert.deepEqual(await putOne(store, a, fakeBlock(0)), { status: 'exists' })
      await fill(store, [{ key: d, block: fakeBlock(3) }])
      assert.equal(await present(store), 'yes no yes yes')
    },
  },
  {
    name: 'K8 a miss is no use',
    async run(context) {
      const store = await openFull(context)
      await assertMiss(store, a, 'size', 63)
      await fill(store, [{ key: d, block: fakeBlock(3) }])
      assert.equal(await present(store), 'no yes yes yes')
    },
  },
  {
    name: 'K8 a large block evicts as many as it needs, and no more',
    async run(context) {
      const store = await openFull(context)
      await fill(store, [{ key: d, block: fakeBlock(3, 65) }])
      assert.equal(await present(store), 'no no yes yes')
      assert.deepEqual([store.stats().bytes, store.stats().evictions], [129, 2])
    },
  },
  {
    name: 'K8 a block larger than the capacity is refused in words and evicts nothing',
    async run(context) {
      const store = await openFull(context)
      for (const block of [fakeBlock(3, 193), fakeBlock(3, 190, { experts: fakeExperts(1, 1) })]) {
        const answer = await putOne(store, d, block)
        assert.ok(answer.status === 'refused')
        assert.match(answer.reason, /\S/)
      }
      assert.equal(await present(store), 'yes yes yes no')
      assert.equal(store.stats().evictions, 0)
    },
  },
  {
    name: 'K8 hits, misses and evictions are counted one by one, lookups are not',
    async run(context) {
      const store = await openFull(context)
      await assertHit(store, a, fakeBlock(0))
      await assertMiss(store, d, 'absent')
      await assertMiss(store, d, 'absent')
      await fill(store, [{ key: d, block: fakeBlock(3) }])
      assert.equal(await store.invalidate({}), 3)
      const { blocks, bytes, hits, misses, corrupt, evictions } = store.stats()
      assert.deepEqual(
        { blocks, bytes, hits, misses, corrupt, evictions },
        { blocks: 0, bytes: 0, hits: 1, misses: 2, corrupt: 0, evictions: 1 },
      )
    },
  },
  {
    name: 'K8 random calls agree with a plain model',
    run: (context) => checkAgainstModel(context),
  },
  {
    name: 'K9 lookup says what a get would find',
    async run({ open }) {
      const { store } = await open()
      assert.deepEqual(await settledLookup(store, [a, b]), ['no', 'no'])
      await fill(store, [{ key: a, block: fakeBlock(1) }])
      assert.deepEqual(await settledLookup(store, [a, b]), ['yes', 'no'])
      await assertHit(store, a, fakeBlock(1))
      await assertMiss(store, b, 'absent')
    },
  },
  {
    name: 'K9 lookup changes no order of use',
    async run(context) {
      const store = await openFull(context)
      for (let times = 0; times < 3; times++) await settledLookup(store, [a])
      await fill(store, [{ key: d, block: fakeBlock(3) }])
      assert.equal(await present(store), 'no yes yes yes')
    },
  },
  {
    name: 'K10 invalidate removes exactly the blocks that match every field given',
    async run({ open }) {
      const entries: { key: KVKey; block: KVBlock }[] = []
      for (const salt of ['old', 'new'])
        for (const tenant of ['one', 'two'])
          for (const max of [4, 5])
            entries.push({
              key: fakeKey('same', { salt, tenant, format: `v${max}` }),
              block: fakeBlock(1, 64, { versions: { min: 1, max } }),
            })
      for (const [selector, matches] of [
        [{ salt: 'old' }, ({ key }) => key.salt === 'old'],
        [{ tenant: 'two' }, ({ key }) => key.tenant === 'two'],
        [{ olderThanVersion: 5 }, ({ block }) => block.versions.max < 5],
        [{ olderThanVersion: 4 }, () => false],
        [
          { salt: 'new', tenant: 'one', olderThanVersion: 5 },
          ({ key, block }) => key.salt === 'new' && key.tenant === 'one' && block.versions.max < 5,
        ],
        [{ salt: 'unknown' }, () => false],
        [{}, () => true],
      ] as const satisfies readonly (readonly [Parameters<KVStore['invalidate']>[0], (entry: (typeof entries)[number]) => boolean])[]) {
        const { store } = await open()
        await fill(store, entries)
        assert.equal(await store.invalidate(selector), entries.filter(matches).length, JSON.stringify(selector))
        for (const entry of entries) {
          if (matches(entry)) await assertMiss(store, entry.key, 'absent')
          else await assertHit(store, entry.key, entry.block)
        }
      }
    },
  },
  {
    name: 'K10 a block on its way is invalidated too',
    async run({ open }) {
      const { store } = await open()
      const [, count] = await Promise.all([store.put([{ key: a, block: fakeBlock(1) }]), store.invalidate({ salt: a.salt })])
      assert.equal(count, 1)
      await assertMiss(store, a, 'absent')
    },
  },
  {
    name: 'K10 an invalidated block leaves room and can be put again',
    async run(context) {
      const store = await openFull(context)
      assert.equal(await store.invalidate({}), 3)
      await fill(store, [{ key: a, block: fakeBlock(9, 192) }])
      await assertHit(store, a, fakeBlock(9, 192))
      assert.deepEqual([store.stats().bytes, store.stats().evictions], [192, 0])
    },
  },
  {
    name: 'K11 a hash that is not 32 bytes long is an error',
    async run({ open }) {
      const { store } = await open()
      for (const length of [0, 31, 33]) {
        const bad = { ...a, hash: new Uint8Array(length) }
        assert.throws(() => store.lookup([a, bad]), hasCode('KV_KEY_INVALID'))
        await assert.rejects(store.get([{ key: bad, into: new Uint8Array(64) }]), hasCode('KV_KEY_INVALID'))
        const entries = [a, bad, b].map((key) => ({ key, block: fakeBlock(1) }))
        await assert.rejects(store.put(entries), hasCode('KV_KEY_INVALID'))
      }
      assert.equal(await present(store), 'no no no no')
    },
  },
  {
    name: 'K11 a checksum that does not match the content is an error',
    async run({ open }) {
      const { store } = await open()
      const good = fakeBlock(1, 64, { experts: fakeExperts(1, 4) })
      const flip = (bytes: Uint8Array) => bytes.map((byte, index) => (index === 15 ? byte ^ 1 : byte))
      const { experts = fakeExperts(1, 4), ...withoutExperts } = good
      for (const bad of [
        { ...good, checksum: good.checksum ^ 1 },
        { ...good, bytes: flip(good.bytes) },
        { ...good, experts: { ...experts, data: flip(experts.data) } },
        withoutExperts,
      ]) {
        const entries = [good, bad, good].map((block, index) => ({ key: [a, b, c][index] ?? d, block }))
        await assert.rejects(store.put(entries), hasCode('KV_BLOCK_INVALID'))
      }
      assert.equal(await present(store), 'no no no no')
      assert.equal(store.stats().bytes, 0)
      await fill(store, [{ key: a, block: good }])
    },
  },
  {
    name: 'K12 of concurrent puts of one key exactly one is stored',
    async run({ open }) {
      const { store } = await open()
      const blocks = Array.from({ length: 16 }, (_, index) => fakeBlock(index))
      const answers = await Promise.all(blocks.map((block) => putOne(store, a, block)))
      const winners = answers.flatMap(({ status }, index) => (status === 'stored' ? [index] : []))
      assert.equal(winners.length, 1, JSON.stringify(answers))
      await assertHit(store, a, fakeBlock(winners[0] ?? 0))
      assert.deepEqual([store.stats().blocks, store.stats().bytes], [1, 64])
    },
  },
  {
    name: 'K12 concurrent calls leave exact books and whole blocks',
    async run({ open }) {
      const { store } = await open(10 * 64)
      const keys = Array.from({ length: 32 }, (_, index) => fakeKey(`key ${index}`, { salt: index % 2 === 0 ? 'even' : 'odd' }))
      await Promise.all(
        keys.flatMap((key, index) => [
          putOne(store, key, fakeBlock(index)),
          store.get([{ key: keys[31 - index] ?? key, into: new Uint8Array(64) }]),
          ...(index % 8 === 7 ? [store.invalidate({ salt: 'odd' })] : []),
        ]),
      )
      const found = await settledLookup(store, keys)
      const count = found.filter((answer) => answer === 'yes').length
      assert.deepEqual([store.stats().blocks, store.stats().bytes], [count, count * 64])
      for (const [index, key] of keys.entries()) if (found[index] === 'yes') await assertHit(store, key, fakeBlock(index))
    },
  },
  {
    name: 'K13 after dispose every call is an error',
    async run({ open }) {
      const { store } = await open()
      await fill(store, [{ key: a, block: fakeBlock(1) }])
      await store.dispose()
      await store.dispose()
      for (const call of [
        () => store.lookup([]),
        () => store.put([]),
        () => store.get([]),
        () => store.invalidate({}),
        () => store.stats(),
      ])
        await assert.rejects(async () => call(), hasCode('PLUGIN_DISPOSED'))
    },
  },
  {
    name: 'K13 dispose gives the memory back',
    async run({ open }) {
      const mebibyte = 1 << 20
      const block = fakeBlock(1, mebibyte)
      const before = await arrayBufferBytes()
      const { store } = await open(8 * mebibyte)
      await store.put(Array.from({ length: 8 }, (_, index) => ({ key: fakeKey(String(index)), block })))
      await store.dispose()
      const left = (await arrayBufferBytes()) - before
      // Not exactly 0: the test runner allocates too.
      assert.ok(left < 4 * mebibyte, `${left} bytes are still held`)
      assert.throws(() => store.stats(), hasCode('PLUGIN_DISPOSED'))
    },
  },
])

/** Names that a skip may use. */
export type KVStoreCaseName = (typeof kvStoreCases)[number]['name']

/** Bytes of array buffers that are still reachable. */
async function arrayBufferBytes(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  for (let pass = 0; pass < 2; pass++) {
    collect()
    await turn()
  }
  return process.memoryUsage().arrayBuffers
}
