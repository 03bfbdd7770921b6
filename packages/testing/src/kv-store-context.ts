import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KVBlock, KVGetAnswer, KVKey, KVLookup, KVPutAnswer, KVStore } from '@trilithon/core'
import type { SuiteContext } from './suite.ts'

/** A store under test, with what a test needs of its inside. */
export interface KVStoreHarness {
  readonly store: KVStore
  /** Changes one stored byte of the block behind the store's back. Without it the cases of K5 are skipped. */
  corrupt?(key: KVKey): void | Promise<void>
}

/** Makes an empty store that holds exactly `capacityBytes`. */
export type MakeKVStore = (capacityBytes: number) => KVStoreHarness | Promise<KVStoreHarness>

/** What a case of the KV store suite runs on. */
export interface KVStoreContext extends SuiteContext {
  /** A new store, disposed when the case ends. */
  open(capacityBytes?: number): Promise<KVStoreHarness>
}

export function openKVStoreContext(make: MakeKVStore): KVStoreContext {
  const opened: KVStore[] = []
  return {
    async open(capacityBytes = 1 << 16) {
      const harness = await make(capacityBytes)
      opened.push(harness.store)
      return harness
    },
    async close() {
      for (const store of opened) await store.dispose()
    },
  }
}

/** Asks until no answer is `not-yet`, as K9 promises that it ends. */
export async function settledLookup(store: KVStore, keys: readonly KVKey[]): Promise<readonly KVLookup[]> {
  const patienceMs = 3000
  for (const deadline = Date.now() + patienceMs; ; ) {
    const answers = store.lookup(keys)
    if (!answers.includes('not-yet')) return answers
    assert.ok(Date.now() < deadline, `K9: repeated asking ends; after ${patienceMs} ms the answer is still not-yet`)
    await sleep(1)
  }
}

/** Puts one block. */
export async function putOne(store: KVStore, key: KVKey, block: KVBlock): Promise<KVPutAnswer> {
  const [answer] = await store.put([{ key, block }])
  assert.ok(answer !== undefined, 'K7: one answer per entry')
  return answer
}

/** Stores blocks, one call each and in order, and waits until each can be had. */
export async function fill(store: KVStore, entries: readonly { readonly key: KVKey; readonly block: KVBlock }[]): Promise<void> {
  for (const { key, block } of entries) {
    assert.deepEqual(await putOne(store, key, block), { status: 'stored' })
    assert.deepEqual(await settledLookup(store, [key]), ['yes'])
  }
}

/** What a slot holds before a `get`, so that an untouched one shows. */
export const untouched = 0xa5

/** Gets one block into a slot of its own. */
export async function readOne(store: KVStore, key: KVKey, length: number): Promise<{ answer: KVGetAnswer; slot: Uint8Array }> {
  await settledLookup(store, [key])
  const slot = new Uint8Array(length).fill(untouched)
  const [answer] = await store.get([{ key, into: slot }])
  assert.ok(answer !== undefined, 'K7: one answer per request')
  return { answer, slot }
}

/** Fails unless a `get` gives back exactly the block. */
export async function assertHit(store: KVStore, key: KVKey, block: KVBlock): Promise<void> {
  const { answer, slot } = await readOne(store, key, block.bytes.length)
  const { bytes, ...rest } = block
  assert.deepEqual(answer, { status: 'hit', ...rest })
  assert.deepEqual(slot, new Uint8Array(bytes))
}

/** Fails unless a `get` into a slot of that length is a miss for that reason and leaves the slot alone. */
export async function assertMiss(store: KVStore, key: KVKey, reason: 'absent' | 'corrupt' | 'size', length = 64): Promise<void> {
  const { answer, slot } = await readOne(store, key, length)
  assert.deepEqual(answer, { status: 'miss', reason })
  assert.deepEqual(slot, new Uint8Array(length).fill(untouched), 'a miss leaves the slot unchanged')
}
