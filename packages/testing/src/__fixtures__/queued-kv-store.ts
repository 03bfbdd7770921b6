import { setImmediate as turn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { crc32 } from 'node:zlib'
import type { KVBlock, KVGetAnswer, KVGetRequest, KVKey, KVLookup, KVPutAnswer, KVSelector, KVStore, KVStoreStats } from '@trilithon/core'
import { TrilithonError } from '@trilithon/core'

interface Held {
  readonly key: KVKey
  readonly block: KVBlock
}

/** Does everything later, one call after the other, and answers `not-yet` meanwhile: the other kind of store. Searches a list. */
export class QueuedKVStore implements KVStore {
  readonly #capacityBytes: number
  #held: readonly Held[] = []
  #queue: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #disposed = false
  #hits = 0
  #misses = 0
  #evictions = 0

  constructor(capacityBytes: number) {
    this.#capacityBytes = capacityBytes
  }

  lookup(keys: readonly KVKey[]): readonly KVLookup[] {
    this.#assertLive()
    keys.forEach(assertKey)
    return keys.map((key) => (this.#waiting > 0 ? 'not-yet' : this.#find(key) === undefined ? 'no' : 'yes'))
  }

  async put(entries: readonly Held[]): Promise<readonly KVPutAnswer[]> {
    this.#assertLive()
    for (const { key, block } of entries) {
      assertKey(key)
      if (checksumOf(block) !== block.checksum) throw new TrilithonError('KV_BLOCK_INVALID', 'checksum')
    }
    return this.#later(() => entries.map((entry) => this.#store(structuredClone(entry))))
  }

  async get(requests: readonly KVGetRequest[]): Promise<readonly KVGetAnswer[]> {
    this.#assertLive()
    for (const { key } of requests) assertKey(key)
    return this.#later(() => requests.map(({ key, into }) => this.#read(key, into)))
  }

  async invalidate({ salt, tenant, olderThanVersion }: KVSelector): Promise<number> {
    this.#assertLive()
    return this.#later(() => {
      const before = this.#held.length
      this.#held = this.#held.filter(
        ({ key, block }) =>
          (salt !== undefined && key.salt !== salt) ||
          (tenant !== undefined && key.tenant !== tenant) ||
          (olderThanVersion !== undefined && block.versions.max >= olderThanVersion),
      )
      return before - this.#held.length
    })
  }

  stats(): KVStoreStats {
    this.#assertLive()
    const bytes = this.#held.reduce((sum, { block }) => sum + sizeOf(block), 0)
    const [blocks, hits, misses, evictions] = [this.#held.length, this.#hits, this.#misses, this.#evictions]
    return { blocks, bytes, capacityBytes: this.#capacityBytes, hits, misses, corrupt: 0, evictions }
  }

  async dispose(): Promise<void> {
    this.#disposed = true
    this.#held = []
  }

  #later<T>(work: () => T): Promise<T> {
    this.#waiting++
    const result = this.#queue.then(() => turn()).then(work)
    this.#queue = result.finally(() => this.#waiting--)
    return result
  }

  #store(entry: Held): KVPutAnswer {
    const held = this.#find(entry.key)
    if (held !== undefined) {
      this.#use(held)
      return { status: 'exists' }
    }
    if (sizeOf(entry.block) > this.#capacityBytes) return { status: 'refused', reason: 'too large' }
    this.#held = [...this.#held, entry]
    while (this.stats().bytes > this.#capacityBytes) {
      this.#held = this.#held.slice(1)
      this.#evictions++
    }
    return { status: 'stored' }
  }

  #read(key: KVKey, into: Uint8Array): KVGetAnswer {
    const held = this.#find(key)
    if (held === undefined || into.length !== held.block.bytes.length) {
      this.#misses++
      return { status: 'miss', reason: held === undefined ? 'absent' : 'size' }
    }
    this.#hits++
    this.#use(held)
    into.set(held.block.bytes)
    const { bytes: _, ...rest } = structuredClone(held.block)
    return { status: 'hit', ...rest }
  }

  #find(key: KVKey): Held | undefined {
    const plain = { ...key, hash: new Uint8Array(key.hash) }
    return this.#held.find((held) => isDeepStrictEqual({ ...held.key, hash: new Uint8Array(held.key.hash) }, plain))
  }

  #use(used: Held): void {
    this.#held = [...this.#held.filter((held) => held !== used), used]
  }

  #assertLive(): void {
    if (this.#disposed) throw new TrilithonError('PLUGIN_DISPOSED', 'disposed')
  }
}

function assertKey({ hash }: KVKey): void {
  if (hash.length !== 32) throw new TrilithonError('KV_KEY_INVALID', 'hash')
}

const sizeOf = ({ bytes, experts }: KVBlock): number => bytes.length + (experts?.data.length ?? 0)
const checksumOf = ({ bytes, experts }: KVBlock): number => (experts === undefined ? crc32(bytes) : crc32(experts.data, crc32(bytes)))
