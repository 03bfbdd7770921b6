import type { KVKey } from '@trilithon/core'
import type { MemoryKVStore } from '../src/memory-kv-store.ts'

/** Flips a bit of a stored block behind the store's back. */
export function corruptStored(store: MemoryKVStore, { hash }: KVKey): void {
  // biome-ignore lint/complexity/useLiteralKeys: only brackets reach a private member
  for (const { key, block } of store['blocks'].values())
    if (Buffer.compare(key.hash, hash) === 0) block.bytes[0] = (block.bytes[0] ?? 0) ^ 1
}
