import { kvBlockHashes, kvRootHash } from '@trilithon/tensor'
import type { Batch } from './batch.ts'
import { type BlockManager, type BlockName, blockName } from './block-manager.ts'
import { insertInOrder, type Sequence } from './sequence.ts'

export interface SchedulerOptions {
  readonly blockSize: number
  /** Most sequences of a step. */
  readonly maxRunning: number
  /** Most tokens of prompts in a step; a token that continues a sequence is not counted, so neither kind of work starves the other. */
  readonly prefillTokens: number
  readonly prefixCaching: boolean
  readonly profile: string
  readonly format: string
  /** Asks for the blocks from `from` on; false where there is nobody to ask. */
  readonly ask: (sequence: Sequence, names: readonly BlockName[]) => boolean
  /** Called before a sequence gives up its pages and waits to be computed again. */
  readonly onPreempt: (sequence: Sequence) => void
}

/**
 * Decides what the next step computes: every running sequence that continues gets its token, then prompts get pieces, then waiting requests begin, by
 * priority and arrival. Where pages run out, the sequence that is served last gives up its own and is computed again later.
 */
export class Scheduler {
  readonly running: Sequence[] = []
  readonly waiting: Sequence[] = []
  preemptions = 0
  prefixQueries = 0
  prefixHits = 0
  /** Requests that arrived later are held. */
  holdAfter = Number.POSITIVE_INFINITY
  /** Counts resets of the cache. */
  epoch = 0
  /** Were part of a step that failed: each of them is computed alone until it has got through. */
  readonly suspects = new Set<Sequence>()
  readonly #blocks: BlockManager
  readonly #options: SchedulerOptions
  /** By salt and tenant: every turn of a rollout has the same. */
  readonly #roots = new Map<string, Uint8Array>()
  /** The request that did not fit, and the room that was too little: it is looked at again when there is more. */
  #blocked: Sequence | null = null
  #blockedRoom = 0

  constructor(blocks: BlockManager, options: SchedulerOptions) {
    this.#blocks = blocks
    this.#options = options
  }

  add(sequence: Sequence): void {
    if (this.#options.prefixCaching && sequence.readsCache) this.#nameBlocks(sequence, sequence.promptLength)
    insertInOrder(this.waiting, sequence)
  }

  /** Takes a sequence out of everything and gives its pages back; what they hold stays known. */
  remove(sequence: Sequence): void {
    const list = sequence.state === 'running' ? this.running : this.waiting
    const place = list.indexOf(sequence)
    if (place >= 0) list.splice(place, 1)
    this.#giveUpPages(sequence)
    this.suspects.delete(sequence)
    sequence.state = 'ended'
  }

  /** Fills the batch; it is empty where nothing can be done. Pages of its rows are there when it returns. */
  fill(batch: Batch, version: number): void {
    batch.clear()
    if (this.suspects.size > 0 && this.#fillAlone(batch, version)) return
    for (let index = 0; index < this.running.length; index++) {
      const sequence = this.running[index] as Sequence
      if (sequence.pending === 1 && this.#reserve(sequence, 1, batch)) batch.add(sequence, 1)
    }
    let budget = this.#options.prefillTokens
    for (let index = 0; index < this.running.length && budget > 0; index++) {
      const sequence = this.running[index] as Sequence
      const count = Math.min(sequence.pending, budget)
      if (sequence.pending === 1 || !this.#reserve(sequence, count, batch)) continue
      batch.add(sequence, count)
      budget -= count
    }
    // From here on nobody loses pages in this step, so that blocks may be known before they are computed: requests that begin together share them.
    for (let index = 0; index < batch.sequences.length; index++)
      this.#note(batch.sequences[index] as Sequence, batch.counts[index] as number, version)
    this.#admit(batch, budget, version)
  }

  /** Forgets what the step was to compute of these. */
  unregister({ sequences }: Batch): void {
    for (const sequence of sequences)
      for (let block = sequence.registeredBefore; block < sequence.registered; block++) {
        const page = sequence.pages[block] as number
        if (this.#blocks.nameOf(page)?.text === sequence.names[block]?.text) this.#blocks.forget(page)
      }
  }

  /** Takes the pages of a sequence away; it waits to be computed again. */
  preempt(sequence: Sequence): void {
    const place = this.running.indexOf(sequence)
    if (place >= 0) this.running.splice(place, 1)
    this.#options.onPreempt(sequence)
    this.#giveUpPages(sequence)
    sequence.state = 'waiting'
    sequence.askedBlocks = 0
    sequence.storedFrom = 0
    sequence.storedTo = 0
    insertInOrder(this.waiting, sequence)
    this.preemptions++
  }

  /** A step failed: all give up their pages, and those of the step are computed again one by one, so that whoever is to blame fails alone. */
  suspect(batch: Batch): void {
    this.unregister(batch)
    for (const sequence of batch.sequences) this.suspects.add(sequence)
    for (const sequence of [...this.running].reverse()) this.preempt(sequence)
  }

  #fillAlone(batch: Batch, version: number): boolean {
    const { prefillTokens } = this.#options
    const running = this.running.find((sequence) => this.suspects.has(sequence))
    if (running !== undefined) {
      const count = Math.min(running.pending, prefillTokens)
      if (!this.#reserve(running, count, batch)) return false
      batch.add(running, count)
      this.#note(running, count, version)
      return true
    }
    const waiting = this.waiting.find(({ state, arrival }) => state === 'waiting' && arrival <= this.holdAfter)
    return waiting !== undefined && this.suspects.has(waiting) && this.#begin(waiting, prefillTokens, this.#room(), batch, version) > 0
  }

  /** Makes the full blocks of a sequence known. */
  #nameBlocks(sequence: Sequence, tokens: number): void {
    const { blockSize, profile, format } = this.#options
    const { names } = sequence
    const { salt, tenant } = sequence.request
    const full = Math.floor(tokens / blockSize)
    if (full <= names.length) return
    const parent = names.at(-1)?.hash ?? this.#rootOf(salt, tenant, profile, format)
    const hashes = kvBlockHashes(parent, sequence.tokens.subarray(names.length * blockSize, full * blockSize), blockSize)
    for (const hash of hashes) names.push(blockName(salt, tenant, hash))
  }

  #rootOf(salt: string, tenant: string, profile: string, format: string): Uint8Array {
    const text = `${salt.length}:${salt}${tenant}`
    let root = this.#roots.get(text)
    if (root === undefined) {
      // A salt per group and version: the few that are in use are enough.
      if (this.#roots.size >= 1024) this.#roots.clear()
      root = kvRootHash({ salt, tenant, profile, format })
      this.#roots.set(text, root)
    }
    return root
  }

  /** Pages for `count` more tokens, if need be from those that are served later; false where the sequence had to give up its own. */
  #reserve(sequence: Sequence, count: number, batch: Batch): boolean {
    const wanted = Math.ceil((sequence.computed + count) / this.#options.blockSize)
    while (sequence.pageCount < wanted) {
      const page = this.#blocks.allocate()
      if (page >= 0) {
        sequence.addPage(page)
        continue
      }
      const victim = this.running[this.running.length - 1] as Sequence
      batch.remove(victim)
      this.preempt(victim)
      if (victim === sequence) return false
    }
    return true
  }

  #admit(batch: Batch, tokens: number, version: number): void {
    let budget = tokens
    let room = this.#room()
    for (let index = 0; index < this.waiting.length && budget > 0 && this.running.length < this.#options.maxRunning; ) {
      const sequence = this.waiting[index] as Sequence
      if (sequence.state === 'asking' || sequence.arrival > this.holdAfter || this.suspects.has(sequence)) {
        index++
        continue
      }
      if (sequence === this.#blocked && room <= this.#blockedRoom) return
      const count = this.#begin(sequence, budget, room, batch, version)
      // It has asked the store, and others go first.
      if (count < 0) continue
      this.#blocked = count === 0 ? sequence : null
      this.#blockedRoom = room
      if (count === 0) return
      budget -= count
      room = this.#room()
    }
  }

  /** Pages that are free and that nobody who runs will ask for: a request that begins must not push out another. */
  #room(): number {
    let room = this.#blocks.free
    for (const { known, pageCount } of this.running) room -= Math.ceil((known + 1) / this.#options.blockSize) - pageCount
    return room
  }

  /** Pages of the longest beginning that is known. The last token is always computed: what follows it is asked for. */
  #findPrefix(sequence: Sequence): number[] {
    const hits: number[] = []
    if (!this.#options.prefixCaching || !sequence.readsCache) return hits
    const most = Math.min(sequence.names.length, Math.floor((sequence.known - 1) / this.#options.blockSize))
    for (let block = 0; block < most; block++) {
      const page = this.#blocks.find((sequence.names[block] as BlockName).text)
      if (page === undefined) break
      hits.push(page)
    }
    return hits
  }

  /** Whether the blocks behind the first `found` ones were asked for just now: the request waits for the answer, and nobody else does. */
  #ask(sequence: Sequence, found: number): boolean {
    if (!this.#options.prefixCaching || !sequence.readsCache || found < sequence.askedBlocks) return false
    const most = Math.min(sequence.names.length, Math.floor((sequence.known - 1) / this.#options.blockSize))
    if (found >= most || !this.#options.ask(sequence, sequence.names.slice(found, most))) return false
    sequence.state = 'asking'
    sequence.askedBlocks = found
    return true
  }

  /** Begins a waiting request and returns the tokens that the step computes of it: 0 where there is no room, -1 where it asks the store first. */
  #begin(sequence: Sequence, budget: number, room: number, batch: Batch, version: number): number {
    const { blockSize } = this.#options
    const hits = this.#findPrefix(sequence)
    if (this.#ask(sequence, hits.length)) return -1
    let wanted = Math.ceil((sequence.known + 1) / blockSize) - hits.length
    for (const page of hits) if (!this.#blocks.isHeld(page)) wanted++
    // Alone, every request fits.
    if (wanted > room && this.running.length > 0) return 0
    this.waiting.splice(this.waiting.indexOf(sequence), 1)
    sequence.contextMin = Number.POSITIVE_INFINITY
    for (const page of hits) {
      this.#blocks.acquire(page)
      sequence.addPage(page)
      sequence.contextMin = Math.min(sequence.contextMin, this.#blocks.oldestVersion(page))
    }
    sequence.computed = hits.length * blockSize
    sequence.registered = hits.length
    sequence.cachedTokens = sequence.computed
    sequence.storedTokens = Math.max(0, Math.min(sequence.storedTo, hits.length) - sequence.storedFrom) * blockSize
    if (sequence.readsCache && !sequence.hasPromptEvent) {
      this.prefixQueries += sequence.known
      this.prefixHits += sequence.cachedTokens
    }
    const count = Math.min(sequence.pending, budget)
    while (sequence.pageCount < Math.ceil((sequence.computed + count) / blockSize)) sequence.addPage(this.#blocks.allocate())
    sequence.state = 'running'
    if (sequence.begunMs === 0) sequence.begunMs = performance.now()
    insertInOrder(this.running, sequence)
    batch.add(sequence, count)
    this.#note(sequence, count, version)
    return count
  }

  /** Notes what the step will compute of a sequence: who computes its pages, and which blocks are full then. */
  #note(sequence: Sequence, count: number, version: number): void {
    const { blockSize, prefixCaching } = this.#options
    const { computed, pages } = sequence
    if (version < sequence.contextMin) sequence.contextMin = version
    const last = Math.floor((computed + count - 1) / blockSize)
    for (let block = Math.floor(computed / blockSize); block <= last; block++)
      this.#blocks.touch(pages[block] as number, version, block * blockSize >= computed)
    sequence.registeredBefore = sequence.registered
    if (!prefixCaching || sequence.epoch !== this.epoch) return
    const full = Math.min(sequence.names.length, Math.floor((computed + count) / blockSize))
    for (; sequence.registered < full; sequence.registered++)
      this.#blocks.register(pages[sequence.registered] as number, sequence.names[sequence.registered] as BlockName)
  }

  #giveUpPages(sequence: Sequence): void {
    const { blockSize, prefixCaching } = this.#options
    if (prefixCaching && sequence.epoch === this.epoch && sequence.pageCount > 0) {
      // Blocks of sampled tokens are named here and not while they are written: the next turn wants them, and no step pays for them.
      this.#nameBlocks(sequence, sequence.computed)
      const full = Math.min(sequence.names.length, Math.floor(sequence.computed / blockSize))
      for (; sequence.registered < full; sequence.registered++)
        this.#blocks.register(sequence.pages[sequence.registered] as number, sequence.names[sequence.registered] as BlockName)
    }
    while (sequence.pageCount > 0) this.#blocks.release(sequence.pages[--sequence.pageCount] as number)
    sequence.computed = 0
    sequence.registered = 0
    sequence.registeredBefore = 0
  }
}
