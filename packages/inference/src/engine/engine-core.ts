import { type FileLayer, type OpaquePayload, TrilithonError } from '@trilithon/core'
import { KVPages, kvComponents, type Model, pagedContextOf } from '@trilithon/models'
import { scope, type Tensor } from '@trilithon/tensor'
import type { OpenWeights } from '@trilithon/transport'
import { Batch } from './batch.ts'
import { BlockManager } from './block-manager.ts'
import { BlockSlots } from './block-slots.ts'
import { ReportBuilder } from './core-report.ts'
import type { EngineEnd, PauseMode, WeightExchange } from './engine.ts'
import type { CoreReport, CoreRequest, FetchedBlocks, SlotLayout } from './engine-messages.ts'
import { rankedCandidates, type Sampled, Sampler, takeRows } from './sampler.ts'
import { Scheduler } from './scheduler.ts'
import { Sequence } from './sequence.ts'
import { ServingWeights } from './serving-weights.ts'
import { SharedStats } from './shared-stats.ts'
import { takeFetched } from './take-fetched.ts'
import { ExpertRows, joinChoices, recordChoices } from './token-records.ts'

export interface EngineCoreOptions {
  readonly model: Model
  /** Of the weights in the model, and the folder that they came from. */
  readonly version: number
  readonly path: string
  readonly profile: string
  readonly blockSize: number
  readonly blocks: number
  readonly maxModelLen: number
  readonly maxRunning: number
  readonly prefillTokens: number
  readonly prefixCaching: boolean
  /** Whether experts are recorded; without it no request gets any. */
  readonly routedExperts: boolean
  readonly endIds: readonly number[]
  readonly slots: SlotLayout | null
  /** Whether somebody keeps blocks that leave, and may have blocks that are missing. */
  readonly hasStore: boolean
  readonly stats: SharedArrayBuffer
  readonly files: FileLayer
  readonly openWeights: (folder: string) => OpenWeights
}

/** Milliseconds that reading weights may take between two steps, and at a time where there is nothing else to do. */
const readingMs = { beside: 2, alone: 8 } as const

/**
 * The engine without a thread of its own: model, pages and scheduler. `step` computes one step and returns; what happened is in the report that `take`
 * gives. Everything between two steps is one call: nothing here runs at the same time as anything else.
 */
export class EngineCore {
  readonly weights: ServingWeights
  readonly stats: SharedStats
  readonly format: string
  readonly #options: EngineCoreOptions
  readonly #pages: KVPages
  readonly #blocks: BlockManager
  readonly #scheduler: Scheduler
  readonly #slots: BlockSlots | null
  readonly #experts: ExpertRows | null
  readonly #choiceLayout: readonly [layers: number, topK: number] | null
  readonly #sampler = new Sampler()
  readonly #batch = new Batch()
  readonly #report = new ReportBuilder()
  readonly #live = new Map<number, Sequence>()
  readonly #sampling: Sequence[] = []
  #arrivals = 0
  #isPaused = false
  #pauses: (() => void)[] = []
  /** End of the step before, on the clock of `performance`; null where it computed nothing. */
  #steppedMs: number | null = null
  /** How long the last step took that computed something. */
  #stepSeconds = 0
  #exchanges: { readonly sinceMs: number; readonly settled: (exchange: WeightExchange) => void }[] = []

  constructor(options: EngineCoreOptions) {
    const { model, version, path, profile, files, openWeights, blockSize, blocks } = options
    this.#options = options
    this.weights = new ServingWeights({ model, version, path, profile, files, openWeights })
    this.#pages = new KVPages(model.config, blocks, blockSize, model.dtype)
    this.format = this.#pages.format
    this.#blocks = new BlockManager(blocks)
    this.#slots = options.slots === null ? null : new BlockSlots(this.#pages, options.slots)
    const layout = options.routedExperts ? model.routedLayout : null
    this.#experts = layout === null ? null : new ExpertRows(layout, blocks, blockSize)
    this.#choiceLayout =
      model.config.family === 'glm_moe_dsa'
        ? [kvComponents(model.config).find(({ name }) => name === 'index')?.layers.length ?? 0, model.config.indexer.topK]
        : null
    const { maxRunning, prefillTokens, prefixCaching } = options
    this.#scheduler = new Scheduler(this.#blocks, {
      blockSize,
      maxRunning,
      prefillTokens,
      prefixCaching,
      profile,
      format: this.format,
      ask: (sequence, names) => {
        if (this.#slots === null || !(options.hasStore || sequence.request.imported !== null)) return false
        this.stats.add('storeQueries', names.length * blockSize)
        this.#report.add('lookups', { handle: sequence.request.handle, names })
        return true
      },
      onPreempt: (sequence) => this.#experts?.keep(sequence),
    })
    this.#blocks.onEvict = (page, name) => {
      const slot = options.hasStore ? this.#slots?.take() : undefined
      if (slot === undefined) return
      this.#slots?.gather(page, slot)
      this.#report.add('evictions', { slot, name, versions: this.#blocks.versionsOf(page), experts: this.#experts?.ofPage(page) ?? null })
    }
    this.stats = new SharedStats(options.stats)
    this.stats.set('version', version)
    model.packProjections()
  }

  /** Begins a request that was checked before. */
  submit(request: CoreRequest): void {
    const { maxModelLen, blockSize } = this.#options
    const sequence = new Sequence(request, this.#arrivals++, this.#scheduler.epoch, maxModelLen, blockSize)
    if (request.promptLogprobs !== null) sequence.promptLists = [[]]
    this.#live.set(request.handle, sequence)
    this.#scheduler.add(sequence)
  }

  /** Ends a request at once; an unknown one is none of its business. */
  abort(handle: number): void {
    const sequence = this.#live.get(handle)
    if (sequence !== undefined) this.#finish(sequence, 'abort')
    this.#settlePause()
  }

  pause(mode: PauseMode, settled: () => void): void {
    this.#pauses.push(settled)
    this.#scheduler.holdAfter = this.#arrivals - 1
    if (mode === 'abort') for (const sequence of [...this.#live.values()]) this.#finish(sequence, 'abort')
    this.#isPaused = mode !== 'wait'
    this.#notePause()
    this.#settlePause()
  }

  resume(): void {
    this.#isPaused = false
    this.#scheduler.holdAfter = Number.POSITIVE_INFINITY
    this.#notePause()
    for (const settled of this.#pauses.splice(0)) settled()
  }

  flip(version: number): void {
    if (!this.#isPaused && this.weights.version !== version)
      throw new TrilithonError('WEIGHTS_NOT_PREPARED', `version ${version} cannot be served without a pause: requests are running`, {
        path: 'version',
        hint: 'Pause the engine first.',
      })
    this.weights.flip(version)
    this.stats.set('version', this.weights.version)
  }

  /** Pause, flip and resume as one; `settled` is called when the next step begins. Throws what `flip` throws. */
  exchange(version: number, settled: (exchange: WeightExchange) => void): void {
    const sinceMs = this.#steppedMs ?? performance.now()
    this.weights.flip(version)
    this.stats.set('version', this.weights.version)
    this.resume()
    this.#exchanges.push({ sinceMs, settled })
  }

  /** Forgets all content; what running requests compute from here on stays theirs. */
  resetPrefixCache(): void {
    this.#scheduler.epoch++
    this.#blocks.clear()
  }

  /** Takes blocks that a request had asked for, and gives their slots back. */
  takeFetched(fetched: FetchedBlocks): void {
    for (const { slot } of fetched.blocks) this.#report.add('slotsRead', slot)
    const sequence = this.#live.get(fetched.handle)
    if (sequence === undefined || sequence.state !== 'asking' || this.#slots === null) return
    const found = takeFetched(sequence, fetched, { blocks: this.#blocks, slots: this.#slots, experts: this.#experts })
    this.stats.add('storeHits', found * this.#options.blockSize)
  }

  /** Slots whose blocks were taken by the store, or dropped. */
  slotsWritten(slots: readonly number[]): void {
    for (const slot of slots) this.#slots?.giveBack(slot)
  }

  /** What happened since the last call. */
  take(): CoreReport | null {
    return this.#report.take()
  }

  /** Computes one step and reads a piece of weights that are to come. False where there is nothing to do until a call comes. */
  step(): boolean {
    for (const { sinceMs, settled } of this.#exchanges.splice(0))
      settled({ pausedSeconds: (performance.now() - sinceMs) / 1e3, stepSeconds: this.#stepSeconds })
    const hasComputed = !this.#isPaused && this.#compute()
    this.#steppedMs = hasComputed ? performance.now() : null
    if (this.weights.isReading) {
      const until = performance.now() + (hasComputed ? readingMs.beside : readingMs.alone)
      do this.weights.advance()
      while (this.weights.isReading && performance.now() < until)
    }
    this.#settlePause()
    const isBusy = hasComputed || this.weights.isReading
    this.#updateStats(isBusy)
    return isBusy
  }

  /** Sentences that are false, for tests; with nothing running every page and every slot is free. */
  faults(): string[] {
    const faults = this.#blocks.faults()
    if (this.#live.size === 0 && this.#blocks.held > 0) faults.push(`${this.#blocks.held} pages are held by nobody`)
    if (this.#scheduler.running.length + this.#scheduler.waiting.length !== this.#live.size) faults.push('a request is in no list')
    return faults
  }

  /** Slots on their way to the store. */
  get slotsInFlight(): number {
    return this.#slots?.inFlight ?? 0
  }

  dispose(): void {
    this.weights.dispose()
    this.#slots?.dispose()
    this.#pages.dispose()
  }

  #compute(): boolean {
    const begin = performance.now()
    const { weights } = this
    const batch = this.#batch
    this.#scheduler.fill(batch, weights.version)
    if (batch.rows === 0) return false
    if (this.stats.get('busySince') === 0) this.stats.set('busySince', Date.now())
    const sampling = this.#sampling
    sampling.length = 0
    for (let index = 0; index < batch.sequences.length; index++) {
      const sequence = batch.sequences[index] as Sequence
      if (sequence.pending === batch.counts[index]) sampling.push(sequence)
    }
    const scheduled = performance.now()
    let sampled: Sampled | null = null
    try {
      sampled = this.#forward(weights.model, batch, sampling)
    } catch (error) {
      this.#failBatch(batch, error)
    }
    const computed = performance.now()
    if (sampled !== null) this.#takeSampled(batch, sampling, sampled)
    const end = performance.now()
    this.stats.add('steps', 1)
    this.#stepSeconds = (end - begin) / 1e3
    this.stats.add('stepSeconds', this.#stepSeconds)
    this.stats.add('schedulerSeconds', (end - computed + scheduled - begin) / 1e3)
    return true
  }

  #forward(model: Model, batch: Batch, sampling: readonly Sequence[]): Sampled | null {
    return scope(() => {
      const recordsChoices = this.#choiceLayout !== null && batch.sequences.some(({ request }) => request.reportsIndexChoices)
      const context = pagedContextOf(this.#pages, batch.describe())
      const result = model.forward(batch.ids(), context, { recordRoutes: this.#experts !== null, recordChoices: recordsChoices })
      if (result.routes !== null) this.#experts?.write(batch, result.routes)
      if (recordsChoices && result.choices !== null) recordChoices(batch, result.choices)
      this.#scorePrompts(model, result.hidden, batch)
      return sampling.length === 0
        ? { tokens: new Int32Array(0), logprobs: new Float32Array(0), candidates: [] }
        : this.#sampler.sample(model, result.hidden, sampling, this.#options.endIds)
    })
  }

  /** Log-probabilities of the prompts that ask for them. */
  #scorePrompts(model: Model, hidden: Tensor, { sequences, counts }: Batch): void {
    let first = 0
    for (let index = 0; index < sequences.length; index++) {
      const { promptLists, request, computed, promptLength } = sequences[index] as Sequence
      const count = counts[index] as number
      // The last token of the prompt says nothing of the prompt.
      const scored = promptLists === null ? 0 : Math.min(count, promptLength - 1 - computed)
      if (promptLists !== null && scored > 0) {
        const rows = takeRows(
          hidden,
          Int32Array.from({ length: scored }, (_, row) => first + row),
        )
        const targets = Array.from(request.promptIds.subarray(computed + 1, computed + 1 + scored))
        const lists = rankedCandidates(model, rows, targets, 1, request.promptLogprobs ?? 0)
        for (const [row, list] of lists.entries()) promptLists[computed + 1 + row] = list
      }
      first += count
    }
  }

  #takeSampled({ sequences, counts }: Batch, sampling: readonly Sequence[], { tokens, logprobs, candidates }: Sampled): void {
    const { version } = this.weights
    const generatedBefore = this.stats.get('generatedTokens')
    let promptRows = 0
    for (let index = 0; index < sequences.length; index++) {
      const sequence = sequences[index] as Sequence
      const count = counts[index] as number
      // A prompt that is computed again, after it lost its pages, is nothing new.
      if (!sequence.hasPromptEvent) promptRows += Math.min(count, sequence.promptLength - sequence.computed)
      sequence.computed += count
    }
    for (let index = 0; index < sampling.length; index++) {
      const sequence = sampling[index] as Sequence
      this.#scheduler.suspects.delete(sequence)
      if (!sequence.hasPromptEvent && this.#beginAnswer(sequence)) continue
      const token = tokens[index] as number
      sequence.push(token)
      this.#emit(sequence, token, logprobs[index] as number, version, sequence.contextMin)
      const list = candidates[index]
      if (list !== undefined) this.#report.addCandidates(list)
      this.#endIfDone(sequence, token)
    }
    this.stats.noteIteration(promptRows + this.stats.get('generatedTokens') - generatedBefore)
  }

  /** The prompt is computed: says so, and gives the token that came with it. True where that token ends the request. */
  #beginAnswer(sequence: Sequence): boolean {
    this.#announcePrompt(sequence)
    this.stats.add('promptTokens', sequence.promptLength)
    const first = sequence.request.imported?.firstToken ?? null
    if (first === null) return false
    this.#emit(sequence, first.id, first.logprob, first.version, first.contextVersionMin)
    return this.#endIfDone(sequence, first.id)
  }

  #announcePrompt(sequence: Sequence): void {
    if (sequence.hasPromptEvent) return
    sequence.hasPromptEvent = true
    const { request, cachedTokens, storedTokens, promptLists, promptLength, arrivedMs, begunMs } = sequence
    const now = performance.now()
    const isWhole = promptLists !== null && promptLists.length === promptLength
    this.#report.add('prompts', {
      handle: request.handle,
      cachedTokens: Math.min(cachedTokens, promptLength),
      storedTokens,
      queueSeconds: ((begunMs || now) - arrivedMs) / 1e3,
      prefillSeconds: begunMs === 0 ? 0 : (now - begunMs) / 1e3,
      promptLogprobs: isWhole ? promptLists : null,
    })
  }

  #emit({ request }: Sequence, token: number, logprob: number, version: number, contextMin: number): void {
    this.#report.addToken(request.handle, token, logprob, version, contextMin)
    this.stats.add('generatedTokens', 1)
    this.stats.noteServed(contextMin)
  }

  #endIfDone(sequence: Sequence, token: number): boolean {
    const { stopIds, stopsAtEnd, minTokens } = sequence.request.sampling
    if (sequence.generated >= minTokens) {
      if (stopsAtEnd && this.#options.endIds.includes(token)) return this.#finish(sequence, 'stop')
      if (stopIds.includes(token)) return this.#finish(sequence, 'stop', token)
    }
    return sequence.known >= sequence.maxLength ? this.#finish(sequence, 'length') : false
  }

  #finish(sequence: Sequence, reason: EngineEnd['reason'], stopId: number | null = null, error: EngineEnd['error'] = null): true {
    const { request, promptLength, generated } = sequence
    this.#announcePrompt(sequence)
    const rows = promptLength + Math.max(0, generated - 1)
    const from = request.routedExpertsFrom
    const routedExperts: OpaquePayload | null =
      from === null || this.#experts === null ? null : this.#experts.ofSequence(sequence, Math.min(from, rows), rows)
    const indexChoices =
      request.reportsIndexChoices && this.#choiceLayout !== null ? joinChoices(sequence, rows, ...this.#choiceLayout) : null
    this.#scheduler.remove(sequence)
    this.#live.delete(request.handle)
    this.#report.add('ends', { handle: request.handle, reason, stopId, routedExperts, indexChoices, error })
    this.stats.add(reason, 1)
    return true
  }

  /** A step that failed is taken apart: its requests are computed alone, and the one that fails alone ends. */
  #failBatch(batch: Batch, error: unknown): void {
    if (!TrilithonError.is(error) || error.code === 'INVARIANT_BROKEN' || error.code === 'NATIVE_ABORTED') throw error
    const [only, ...others] = batch.sequences
    if (only === undefined || others.length > 0) {
      this.#scheduler.suspect(batch)
      return
    }
    this.#scheduler.unregister(batch)
    this.#finish(only, 'error', null, { code: error.code, message: error.message })
  }

  #settlePause(): void {
    if (this.#pauses.length === 0) return
    if (!this.#isPaused) {
      for (const { arrival } of this.#live.values()) if (arrival <= this.#scheduler.holdAfter) return
      this.#isPaused = true
    }
    for (const settled of this.#pauses.splice(0)) settled()
  }

  #notePause(): void {
    this.stats.set('isPaused', this.#isPaused || this.#scheduler.holdAfter !== Number.POSITIVE_INFINITY ? 1 : 0)
  }

  #updateStats(isBusy: boolean): void {
    const { stats } = this
    this.#notePause()
    stats.set('running', this.#scheduler.running.length)
    stats.set('waiting', this.#scheduler.waiting.length)
    stats.set('usedBlocks', this.#blocks.held)
    stats.set('cachedBlocks', this.#blocks.cached)
    stats.set('prefixQueries', this.#scheduler.prefixQueries)
    stats.set('prefixHits', this.#scheduler.prefixHits)
    stats.set('preemptions', this.#scheduler.preemptions)
    stats.set('busySince', isBusy ? Date.now() : 0)
  }
}
