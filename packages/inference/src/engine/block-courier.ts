import { crc32 } from 'node:zlib'
import type { KVBlock, KVKey, KVLookup, KVStore, Logger } from '@trilithon/core'
import { keyOf } from './block-manager.ts'
import type { ImportedPrompt } from './engine.ts'
import type { BlockLookup, EvictedBlock, FetchedBlocks, SlotLayout } from './engine-messages.ts'

export interface BlockCourierOptions {
  readonly store: KVStore | null
  readonly layout: SlotLayout
  readonly profile: string
  readonly format: string
  readonly log: Logger
  /** Slots whose blocks were taken or dropped. */
  readonly onWritten: (slots: readonly number[]) => void
  readonly onFetched: (fetched: FetchedBlocks) => void
}

interface Asked {
  readonly lookup: BlockLookup
  readonly imported: ImportedPrompt['blocks']
}

/** How often a block that is on its way is asked for, and the milliseconds before the first time; every wait is twice as long as the one before. */
const patience = { tries: 7, firstMs: 1 } as const

/**
 * Carries blocks between the engine's slots and the store, on the main thread. A store that fails, hangs on to nothing or gives back other bytes than it
 * was given costs a computation and never a request.
 */
export class BlockCourier {
  readonly #options: BlockCourierOptions
  readonly #bytes: Uint8Array
  readonly #free: number[]
  readonly #queue: Asked[] = []
  #hasWarned = false

  constructor(options: BlockCourierOptions) {
    this.#options = options
    const { buffer, leaving, coming } = options.layout
    this.#bytes = new Uint8Array(buffer)
    this.#free = Array.from({ length: coming }, (_, index) => leaving + coming - 1 - index)
  }

  /** Slots that hold blocks which the engine has not read yet. */
  get inFlight(): number {
    return this.#options.layout.coming - this.#free.length
  }

  /** Blocks that left the engine's cache. */
  async put(evicted: readonly EvictedBlock[]): Promise<void> {
    const { store, profile, format, onWritten } = this.#options
    try {
      const entries = evicted.map(({ slot, name, versions, experts }) => {
        const bytes = this.#slot(slot)
        const checksum = experts === null ? crc32(bytes) : crc32(experts.data, crc32(bytes))
        return { key: keyOf(name, profile, format), block: { bytes, checksum, versions, ...(experts === null ? {} : { experts }) } }
      })
      await store?.put(entries)
    } catch (error) {
      this.#warn(error)
    }
    onWritten(evicted.map(({ slot }) => slot))
  }

  /** Looks for blocks that a request is missing: first among those that came with it. Every lookup is answered once, also where nothing is found. */
  look(lookup: BlockLookup, imported: ImportedPrompt['blocks']): void {
    this.#queue.push({ lookup, imported })
    this.#next()
  }

  slotsRead(slots: readonly number[]): void {
    this.#free.push(...slots)
    this.#next()
  }

  #next(): void {
    while (this.#queue.length > 0 && this.#free.length > 0) {
      const { lookup, imported } = this.#queue.shift() as Asked
      const slots = this.#free.splice(-Math.min(this.#free.length, lookup.names.length))
      void this.#fetch(lookup, imported, slots).then((fetched) => {
        this.#options.onFetched(fetched)
        const used = new Set(fetched.blocks.map(({ slot }) => slot))
        this.slotsRead(slots.filter((slot) => !used.has(slot)))
      })
    }
  }

  async #fetch({ handle, names }: BlockLookup, imported: ImportedPrompt['blocks'], slots: readonly number[]): Promise<FetchedBlocks> {
    const { profile, format } = this.#options
    const keys = names.slice(0, slots.length).map((name) => keyOf(name, profile, format))
    const blocks: FetchedBlocks['blocks'][number][] = []
    try {
      for (const key of keys) {
        const slot = slots[blocks.length] as number
        const given = imported.find((entry) => isSameKey(entry.key, key))?.block
        if (given === undefined || !this.#accept(given, slot)) break
        blocks.push({ slot, versions: given.versions, experts: given.experts ?? null })
      }
      const rest = keys.slice(blocks.length)
      const count = await this.#countStored(rest)
      if (count > 0) blocks.push(...(await this.#get(rest.slice(0, count), slots.slice(blocks.length))))
    } catch (error) {
      this.#warn(error)
    }
    return { handle, blocks, isPartial: blocks.length === keys.length && names.length > keys.length }
  }

  /** Takes a block that came with a request, when it is whole. */
  #accept({ bytes, checksum, experts }: KVBlock, slot: number): boolean {
    if (bytes.length !== this.#options.layout.slotBytes) return false
    if ((experts === undefined ? crc32(bytes) : crc32(experts.data, crc32(bytes))) !== checksum) return false
    this.#slot(slot).set(bytes)
    return true
  }

  /** How many of the first keys are in the store; waits a little for what is on its way. */
  async #countStored(keys: readonly KVKey[]): Promise<number> {
    const { store } = this.#options
    if (store === null || keys.length === 0) return 0
    for (let attempt = 0, ms: number = patience.firstMs; ; attempt++, ms *= 2) {
      const answers: readonly KVLookup[] = store.lookup(keys)
      const missing: number = answers.findIndex((answer) => answer !== 'yes')
      const count = missing < 0 ? keys.length : missing
      if (answers[count] !== 'not-yet' || attempt === patience.tries) return count
      await new Promise((resolve) => setTimeout(resolve, ms))
    }
  }

  async #get(keys: readonly KVKey[], slots: readonly number[]): Promise<FetchedBlocks['blocks'][number][]> {
    const requests = keys.map((key, index) => ({ key, into: this.#slot(slots[index] as number) }))
    const answers = (await this.#options.store?.get(requests)) ?? []
    const blocks: FetchedBlocks['blocks'][number][] = []
    for (const [index, answer] of answers.entries()) {
      const slot = slots[index] as number
      if (answer.status !== 'hit') break
      const bytes = this.#slot(slot)
      const { experts, versions, checksum } = answer
      if ((experts === undefined ? crc32(bytes) : crc32(experts.data, crc32(bytes))) !== checksum) break
      blocks.push({ slot, versions, experts: experts ?? null })
    }
    return blocks
  }

  #slot(slot: number): Uint8Array {
    const { slotBytes } = this.#options.layout
    return this.#bytes.subarray(slot * slotBytes, (slot + 1) * slotBytes)
  }

  #warn(error: unknown): void {
    if (this.#hasWarned) return
    this.#hasWarned = true
    this.#options.log.warn('the KV store fails: blocks are computed again', {
      error: error instanceof Error ? error.message : String(error),
    })
  }
}

function isSameKey(a: KVKey, b: KVKey): boolean {
  return (
    a.salt === b.salt && a.tenant === b.tenant && a.profile === b.profile && a.format === b.format && Buffer.compare(a.hash, b.hash) === 0
  )
}
