import type { KVKey } from '@trilithon/core'
import type { MemoryKVStore } from '../src/memory-kv-store.ts'

/** Flips a bit of a stored block, or of its experts, behind the store's back. */
export function corruptStored(store: MemoryKVStore, { hash }: KVKey, part: 'bytes' | 'experts' = 'bytes'): void {
  // biome-ignore lint/complexity/useLiteralKeys: only brackets reach a private member
  for (const [, { key, block }] of store['blocks']) {
    const stored = part === 'bytes' ? block.bytes : block.experts?.data
    if (stored !== undefined && Buffer.compare(key.hash, hash) === 0) stored[0] = (stored[0] ?? 0) ^ 1
  }
}
