import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { KVBlock, KVKey, OpaquePayload, VersionRange } from '@trilithon/core'

/** A key whose hash is that of `label`; equal labels give equal keys. */
export function fakeKey(label: string, given: Partial<KVKey> = {}): KVKey {
  const hash = new Uint8Array(createHash('sha256').update(label).digest())
  return { salt: 'salt', profile: 'fp32', format: 'fake-kv', tenant: 'tenant', hash, ...given }
}

/** A block of `length` bytes that depend on `seed`, with the checksum that belongs to it. */
export function fakeBlock(
  seed: number,
  length = 64,
  { experts, versions = { min: 0, max: 0 } }: { readonly experts?: OpaquePayload; readonly versions?: VersionRange } = {},
): KVBlock {
  const bytes = patternOf(seed, length)
  const checksum = experts === undefined ? crc32(bytes) : crc32(experts.data, crc32(bytes))
  return { bytes, ...(experts === undefined ? {} : { experts }), checksum, versions }
}

/** Routed experts of `rows` tokens, 2 layers and top-2, of values that depend on `seed`. */
export function fakeExperts(seed: number, rows: number, dtype: OpaquePayload['dtype'] = 'uint8'): OpaquePayload {
  return { data: patternOf(seed, rows * 4 * (dtype === 'uint8' ? 1 : 2)), shape: [rows, 2, 2], dtype }
}

/** Not one byte repeated: a block that is cut, shifted or joined from two others must differ. */
function patternOf(seed: number, length: number): Uint8Array {
  let state = seed
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state >>> 24
  })
}
