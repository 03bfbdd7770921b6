import { randomBytes } from 'node:crypto'
import type { Engine, EngineEnd, EngineEvent, TokenCandidate } from '../engine/engine.ts'
import type { GenerateRequest } from './generate-request.ts'

/** What has come of one completion. All lists have one entry per token. */
export interface Completion {
  readonly index: number
  readonly tokenIds: number[]
  readonly logprobs: number[]
  readonly versions: number[]
  readonly contextVersionsMin: number[]
  /** Empty lists where none were asked for. */
  readonly candidates: (readonly TokenCandidate[])[]
  end: EngineEnd | null
}

export interface GenerationTimes {
  /** Of the first completion, as the engine tells them. */
  queueSeconds: number
  prefillSeconds: number
  readonly startedMs: number
  firstTokenMs: number | null
  lastTokenMs: number | null
}

/** What a generation tells the one who counts requests. */
export interface GenerationObserver {
  tokens(generation: Generation, completion: Completion, count: number, gapMs: number | null): void
  ended(generation: Generation, completion: Completion): void
}

export interface GenerationOptions {
  readonly engine: Engine
  readonly request: GenerateRequest
  readonly requestId: string
  readonly tenant: string
  readonly returnsRoutedExperts: boolean
  /** Log-probabilities that are asked of the engine, which may be more than the answer shows. */
  readonly logprobs: number | null
  readonly observer: GenerationObserver
  /** Something has come. Called on the main thread, never during `begin`. */
  readonly onProgress?: (generation: Generation) => void
  /** Milliseconds of a clock that does not go back. */
  readonly now?: () => number
}

/** The `n` completions of one request, from the engine's events. */
export class Generation {
  readonly request: GenerateRequest
  readonly requestId: string
  readonly completions: readonly Completion[]
  readonly times: GenerationTimes
  /** Tokens of the prompt that the first completion found in the cache. */
  cachedTokens = 0
  promptLogprobs: readonly (readonly TokenCandidate[])[] | null = null
  /** Resolves when every completion has ended. */
  readonly ended: Promise<void>
  readonly #options: GenerationOptions
  readonly #engineIds: readonly string[]
  readonly #lastMs: (number | null)[]
  #open: number
  #finish: () => void = () => undefined

  constructor(options: GenerationOptions) {
    const { request, requestId, now = () => performance.now() } = options
    this.#options = { ...options, now }
    this.request = request
    this.requestId = requestId
    // Clients may use one id twice; the engine's are its own.
    const unique = randomBytes(6).toString('hex')
    this.#engineIds = Array.from({ length: request.n }, (_, index) => `${requestId}-${unique}-${index}`)
    this.completions = this.#engineIds.map((_, index) => ({
      ...{ index, tokenIds: [], logprobs: [], versions: [], contextVersionsMin: [], candidates: [], end: null },
    }))
    this.#lastMs = this.#engineIds.map(() => null)
    this.#open = request.n
    this.times = { queueSeconds: 0, prefillSeconds: 0, startedMs: now(), firstTokenMs: null, lastTokenMs: null }
    this.ended = new Promise((resolve) => {
      this.#finish = resolve
    })
  }

  /** Hands the completions to the engine. Throws what the engine refuses, and then none of them runs. */
  begin(): void {
    const { engine, request, tenant, returnsRoutedExperts, logprobs } = this.#options
    const { sampling } = request
    for (const [index, id] of this.#engineIds.entries()) {
      try {
        engine.submit(
          {
            id,
            promptIds: request.promptIds,
            sampling: { ...sampling, seed: BigInt.asIntN(64, sampling.seed + BigInt(index)) },
            salt: request.salt,
            tenant,
            priority: request.priority,
            logprobs,
            // The prompt is the same for all.
            promptLogprobs: index === 0 ? request.promptLogprobs : null,
            routedExpertsFrom: returnsRoutedExperts ? request.routedExpertsFrom : null,
            reportsIndexChoices: request.returnsIndexChoices,
            imported: null,
          },
          (event) => this.#take(index, event),
        )
      } catch (error) {
        engine.abort(this.#engineIds.slice(0, index))
        throw error
      }
    }
  }

  /** Ends what still runs; its tokens so far stay the answer. */
  abort(): void {
    const running = this.#engineIds.filter((_, index) => this.completions[index]?.end === null)
    if (running.length > 0) this.#options.engine.abort(running)
  }

  /** The engine is gone: what still runs ends with an error. */
  fail(message: string): void {
    const error = { code: 'ENGINE_FAILED', message }
    for (const [index, id] of this.#engineIds.entries())
      this.#take(index, { kind: 'end', id, reason: 'error', stopId: null, routedExperts: null, indexChoices: null, error })
  }

  get isEnded(): boolean {
    return this.#open === 0
  }

  #take(index: number, event: EngineEvent): void {
    const completion = this.completions[index]
    if (completion === undefined || completion.end !== null) return
    const { observer, onProgress, now = () => performance.now() } = this.#options
    if (event.kind === 'prompt') {
      if (index === 0) {
        this.cachedTokens = event.cachedTokens
        this.promptLogprobs = event.promptLogprobs
        this.times.queueSeconds = event.queueSeconds
        this.times.prefillSeconds = event.prefillSeconds
      }
      return
    }
    if (event.kind === 'tokens') {
      const at = now()
      this.times.firstTokenMs ??= at
      this.times.lastTokenMs = at
      append(completion.tokenIds, event.tokenIds)
      append(completion.logprobs, event.logprobs)
      append(completion.versions, event.versions)
      append(completion.contextVersionsMin, event.contextVersionsMin)
      for (const list of event.candidates) completion.candidates.push(list)
      const last = this.#lastMs[index] ?? null
      this.#lastMs[index] = at
      observer.tokens(this, completion, event.tokenIds.length, last === null ? null : at - last)
    } else {
      completion.end = event
      this.#open -= 1
      observer.ended(this, completion)
      if (this.#open === 0) this.#finish()
    }
    onProgress?.(this)
  }
}

function append(to: number[], from: ArrayLike<number>): void {
  for (let index = 0; index < from.length; index++) to.push(from[index] as number)
}
