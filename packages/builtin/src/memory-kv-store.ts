import { crc32 } from 'node:zlib'
import {
  definePlugin,
  invariant,
  type KVBlock,
  type KVGetAnswer,
  type KVGetRequest,
  type KVKey,
  type KVLookup,
  type KVPutAnswer,
  type KVSelector,
  KVStore,
  type KVStoreStats,
  TrilithonError,
} from '@trilithon/core'
import { z } from 'zod'
import { RecencyMap } from './recency-map.ts'

interface StoredBlock {
  /** Of the key, what a selector of `invalidate` names. */
  readonly salt: string
  readonly tenant: string
  readonly block: KVBlock
}

/** A copy in any case: `slice()` would not do, because that of a Buffer is a view on the same bytes. */
const copyOf = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes)

const copyOfExperts = ({ experts }: KVBlock): Pick<KVBlock, 'experts'> =>
  experts === undefined ? {} : { experts: { data: copyOf(experts.data), shape: [...experts.shape], dtype: experts.dtype } }

const copyOfBlock = (block: KVBlock): KVBlock => ({
  bytes: copyOf(block.bytes),
  ...copyOfExperts(block),
  checksum: block.checksum,
  versions: { ...block.versions },
})

const sizeOf = (block: KVBlock): number => block.bytes.length + (block.experts?.data.length ?? 0)

const checksumOf = ({ bytes, experts }: KVBlock): number => (experts === undefined ? crc32(bytes) : crc32(experts.data, crc32(bytes)))

/** Text that is equal for equal keys only: each field but the last is preceded by its length. */
export function nameOfKey({ salt, profile, format, tenant, hash }: KVKey): string {
  if (hash.length !== 32)
    throw new TrilithonError('KV_KEY_INVALID', `The hash of a KV key has 32 bytes, this one has ${hash.length}.`, {
      path: 'key.hash',
      hint: 'Give the 32-byte chain hash of the block.',
    })
  const hashText = Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString('latin1')
  return `${hashText}${salt.length}:${salt}${profile.length}:${profile}${format.length}:${format}${tenant}`
}

function assertIntact(block: KVBlock): void {
  const checksum = checksumOf(block)
  if (checksum === block.checksum) return
  throw new TrilithonError('KV_BLOCK_INVALID', `The checksum of a KV block is ${checksum}, the block says ${block.checksum}.`, {
    path: 'block.checksum',
    hint: 'Compute the CRC-32 over the bytes, then over the data of the experts, and change neither afterwards.',
  })
}

/**
 * Keeps KV blocks in main memory within an exact budget of bytes; the least recently used go first.
 *
 * Every call does its work before it returns, so concurrent calls are answered in the order in which they were made, and no block is ever
 * on its way.
 */
export class MemoryKVStore implements KVStore {
  readonly #capacityBytes: number
  /** Not `#blocks`, so that a test can corrupt a stored byte. */
  private readonly blocks = new RecencyMap<StoredBlock>()
  #bytes = 0
  #hits = 0
  #misses = 0
  #corrupt = 0
  #evictions = 0
  #disposed = false

  constructor(capacityBytes: number) {
    this.#capacityBytes = capacityBytes
  }

  lookup(keys: readonly KVKey[]): readonly KVLookup[] {
    this.#assertLive('lookup')
    return keys.map((key) => (this.blocks.has(nameOfKey(key)) ? 'yes' : 'no'))
  }

  async put(entries: Parameters<KVStore['put']>[0]): Promise<readonly KVPutAnswer[]> {
    this.#assertLive('put')
    // Names and checksums of all entries come before the first change: a call with one bad entry stores nothing.
    const named = entries.map(({ key, block }) => ({ name: nameOfKey(key), key, block }))
    for (const { block } of named) assertIntact(block)
    return named.map(({ name, key, block }) => this.#store(name, key, block))
  }

  async get(requests: readonly KVGetRequest[]): Promise<readonly KVGetAnswer[]> {
    this.#assertLive('get')
    const named = requests.map(({ key, into }) => ({ name: nameOfKey(key), into }))
    return named.map(({ name, into }) => this.#read(name, into))
  }

  async invalidate(selector: KVSelector): Promise<number> {
    this.#assertLive('invalidate')
    const { salt, tenant, olderThanVersion } = selector
    let count = 0
    for (const [name, { block, ...held }] of this.blocks) {
      if (salt !== undefined && held.salt !== salt) continue
      if (tenant !== undefined && held.tenant !== tenant) continue
      if (olderThanVersion !== undefined && block.versions.max >= olderThanVersion) continue
      this.#remove(name, block)
      count++
    }
    return count
  }

  stats(): KVStoreStats {
    this.#assertLive('stats')
    return {
      blocks: this.blocks.size,
      bytes: this.#bytes,
      capacityBytes: this.#capacityBytes,
      hits: this.#hits,
      misses: this.#misses,
      corrupt: this.#corrupt,
      evictions: this.#evictions,
    }
  }

  async dispose(): Promise<void> {
    this.#disposed = true
    this.blocks.clear()
    this.#bytes = 0
  }

  #store(name: string, key: KVKey, block: KVBlock): KVPutAnswer {
    const held = this.blocks.peek(name)
    if (held !== undefined) {
      this.blocks.use(name, held)
      return { status: 'exists' }
    }
    const size = sizeOf(block)
    if (size > this.#capacityBytes)
      return { status: 'refused', reason: `The block has ${size} bytes, more than the ${this.#capacityBytes} of the whole store.` }
    this.#makeRoom(size)
    this.blocks.use(name, { salt: key.salt, tenant: key.tenant, block: copyOfBlock(block) })
    this.#bytes += size
    return { status: 'stored' }
  }

  #read(name: string, into: Uint8Array): KVGetAnswer {
    const held = this.blocks.peek(name)
    if (held === undefined) return this.#miss('absent')
    const { block } = held
    if (into.length !== block.bytes.length) return this.#miss('size')
    if (checksumOf(block) !== block.checksum) {
      this.#remove(name, block)
      this.#corrupt++
      return this.#miss('corrupt')
    }
    this.blocks.use(name, held)
    this.#hits++
    into.set(block.bytes)
    return { status: 'hit', ...copyOfExperts(block), checksum: block.checksum, versions: { ...block.versions } }
  }

  #miss(reason: 'absent' | 'corrupt' | 'size'): KVGetAnswer {
    this.#misses++
    return { status: 'miss', reason }
  }

  #makeRoom(size: number): void {
    for (const [name, { block }] of this.blocks) {
      if (this.#bytes + size <= this.#capacityBytes) return
      this.#remove(name, block)
      this.#evictions++
    }
  }

  #remove(name: string, block: KVBlock): void {
    this.blocks.delete(name)
    this.#bytes -= sizeOf(block)
  }

  #assertLive(call: string): void {
    if (this.#disposed)
      throw new TrilithonError('PLUGIN_DISPOSED', `The memory KV store was asked to ${call} after it was disposed.`, {
        hint: 'Stop the engine before its KV store is disposed.',
      })
  }
}

const at = 'inference.kv_cache_offload'

const keys = z.strictObject({
  cpu: z
    .strictObject({
      num_bytes: z.number().int().positive().describe('Bytes that the stored blocks may fill in main memory.'),
    })
    .describe('Tier in main memory.'),
  disk: z
    .strictObject({ path: z.string().min(1).describe('Folder that the tier writes to.') })
    .nullable()
    .default(null)
    .describe('Tier on disk below the one in memory. Not built yet.'),
})

/** The built-in `KVStore`: `[inference.kv_cache_offload] type = "native"`. */
export const memoryKVStore = definePlugin({
  name: '@trilithon/builtin/memory-kv-store',
  fills: KVStore,
  claims: [{ at, type: 'native', keys }],
  capabilities: { carries_routed_experts: true },
  *check({ config }) {
    if (config[at]?.disk != null)
      yield {
        message: 'The disk tier of the native KV store is not built yet; only main memory is.',
        path: `${at}.disk`,
        hint: `Remove the table [${at}.disk].`,
      }
  },
  create({ config }) {
    const table = config[at]
    invariant(table !== undefined, `${at} activates the memory KV store, so it cannot be absent.`)
    return new MemoryKVStore(table.cpu.num_bytes)
  },
})
