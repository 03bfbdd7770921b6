import type { OpaquePayload } from '../data/opaque-payload.ts'
import type { VersionRange } from '../data/policy-version.ts'
import { type Disposable, defineSeam } from '../seam.ts'

/**
 * What makes two KV blocks the same block. All five fields count.
 *
 * `hash` chains over the token ids of the prefix, so a block stands for its whole prefix; the salt is that of the group.
 */
export interface KVKey {
  readonly salt: string
  /** Numerics profile that computed it. */
  readonly profile: string
  /** Layout and dtype of the bytes, with the model's name for them. */
  readonly format: string
  readonly tenant: string
  /** 32 bytes. */
  readonly hash: Uint8Array
}

/** Content of a block. Immutable once it is stored. */
export interface KVBlock {
  readonly bytes: Uint8Array
  /** Routed experts of the block's tokens, carried and never read. */
  readonly experts?: OpaquePayload
  /** CRC-32 (the polynomial of zlib) over `bytes`, then over the data of `experts`. */
  readonly checksum: number
  /** Weights that computed it. */
  readonly versions: VersionRange
}

/** `not-yet`: on its way (being written, or fetched from a slower tier); ask again. */
export type KVLookup = 'yes' | 'no' | 'not-yet'

/** `exists`: the key was there, its content is kept. `refused`: `reason` says why; the caller goes on without. */
export type KVPutAnswer = { readonly status: 'stored' | 'exists' } | { readonly status: 'refused'; readonly reason: string }

export interface KVGetRequest {
  readonly key: KVKey
  /** Where the bytes go: a slot of the engine's shared buffer, exactly as long as the block. */
  readonly into: Uint8Array
}

export type KVGetAnswer =
  | { readonly status: 'hit'; readonly experts?: OpaquePayload; readonly checksum: number; readonly versions: VersionRange }
  | { readonly status: 'miss'; readonly reason: 'absent' | 'corrupt' | 'size' | 'unavailable' }

/** A block is selected when every given field matches. */
export interface KVSelector {
  readonly salt?: string
  readonly tenant?: string
  /** Blocks whose newest weights are older than this. */
  readonly olderThanVersion?: number
}

export interface KVStoreStats {
  readonly blocks: number
  /** Bytes of all stored blocks: `bytes` plus the data of `experts`. Never above `capacityBytes`. */
  readonly bytes: number
  readonly capacityBytes: number
  readonly hits: number
  readonly misses: number
  /** Misses because the checksum did not match. */
  readonly corrupt: number
  readonly evictions: number
}

/**
 * Keeps KV blocks that left the engine's cache, to give them back bit for bit. Thread: main. A failure of the store is a miss, never a
 * failure of the request: the engine computes again.
 *
 * Contract:
 * - K1 What `get` writes into the slot and returns is bit for bit what `put` was given, experts, checksum and versions included.
 * - K2 Two keys that differ in any of the five fields are different blocks.
 * - K3 The first `put` of a key wins: a second answers `exists` and changes nothing.
 * - K4 `put` has its own copy when its promise resolves; the caller may reuse the bytes then.
 * - K5 A block whose stored bytes no longer match the checksum is a miss `corrupt`, is removed, and leaves the slot unchanged.
 * - K6 A slot of another length than the block is a miss `size` and stays unchanged; the block is kept.
 * - K7 Answers come in the order of the requests, one each; an empty list gives an empty list.
 * - K8 `stats().bytes` is the exact sum over stored blocks and never exceeds `capacityBytes`; the least recently used go first (a `put`, a hit
 *   and an `exists` are uses). A block larger than the capacity is `refused` and evicts nothing.
 * - K9 `lookup` answers without waiting and changes no order of use: `yes` only if a `get` at once would hit (K5 and K6 apart), `no` only if it
 *   would miss, otherwise `not-yet`; repeated asking ends in `yes` or `no`.
 * - K10 `invalidate` removes exactly the selected blocks, those on their way included, and resolves to their number; afterwards none of them
 *   is served.
 * - K11 A hash that is not 32 bytes long is `KV_KEY_INVALID`, a `put` whose checksum does not match its content `KV_BLOCK_INVALID`; the other entries of
 *   the call are not stored.
 * - K12 Concurrent calls are answered as if in some order.
 * - K13 After `dispose` every call throws (or rejects with) `PLUGIN_DISPOSED`, and memory is given back.
 */
export interface KVStore extends Disposable {
  lookup(keys: readonly KVKey[]): readonly KVLookup[]
  put(entries: readonly { readonly key: KVKey; readonly block: KVBlock }[]): Promise<readonly KVPutAnswer[]>
  get(requests: readonly KVGetRequest[]): Promise<readonly KVGetAnswer[]>
  invalidate(selector: KVSelector): Promise<number>
  stats(): KVStoreStats
}

export const KVStore = defineSeam<KVStore>({ id: 'kv-store', version: 1, cardinality: 'one', thread: 'main', runsIn: ['inference'] })
