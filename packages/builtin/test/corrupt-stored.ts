import type { KVKey } from '@trilithon/core'
import { type MemoryKVStore, nameOfKey } from '../src/memory-kv-store.ts'

/** Flips a bit of a stored block, or of its experts, behind the store's back. */
export function corruptStored(store: MemoryKVStore, key: KVKey, part: 'bytes' | 'experts' = 'bytes'): void {
  // biome-ignore lint/complexity/useLiteralKeys: only brackets reach a private member
  const block = store['blocks'].peek(nameOfKey(key))?.block
  const stored = part === 'bytes' ? block?.bytes : block?.experts?.data
  if (stored === undefined) throw new Error('nothing is stored that could be corrupted')
  stored[0] = (stored[0] ?? 0) ^ 1
}
