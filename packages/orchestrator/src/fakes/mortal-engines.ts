import type { PolicyVersion, Turn } from '@trilithon/core'
import type { EpisodeRequest, EpisodeResult } from '@trilithon/environments'
import type { EpisodePool } from '../dispatch/group-plan.ts'
import type { EngineAdmin, ExchangedWeights, PreparedWeights } from '../fleet/engine-admin.ts'
import type { Clock } from '../run/clock.ts'

interface Process {
  version: PolicyVersion
  prepared: PolicyVersion | null
  isPaused: boolean
  /** By salt: the oldest version that computed keys which are in the cache under it. */
  readonly keys: Map<string, PolicyVersion>
}

export interface MortalEnginesOptions {
  readonly clock: Clock
  readonly urls: readonly string[]
  /** Version of the model folder, which a process serves when it starts. */
  readonly modelVersion?: PolicyVersion
  /** The newest version whose weights are there. */
  readonly published: () => PolicyVersion
  /** So many of the newest versions are kept. */
  readonly keep?: number
  /** Milliseconds of a call. */
  readonly callMs?: () => number
  readonly betweenSteps?: boolean
  /** Whether a call is lost on its way, so that nothing of it is done. */
  readonly loses?: (url: string, call: string) => boolean
  /** Whether requests are refused that an older version would answer. */
  readonly refusesOlder?: boolean
}

/** Engines whose processes die with everything that is in them, and come back as they began. */
export class MortalEngines implements EngineAdmin {
  readonly #options: MortalEnginesOptions
  readonly #processes = new Map<string, Process>()
  /** What was done to each, with the deaths. */
  readonly events: string[] = []

  constructor(options: MortalEnginesOptions) {
    this.#options = options
    for (const url of options.urls) this.start(url)
  }

  kill(url: string): void {
    if (this.#processes.delete(url)) this.events.push(`${url} dies`)
  }

  start(url: string): void {
    if (this.#processes.has(url)) return
    const { modelVersion = 0 } = this.#options
    this.#processes.set(url, { version: modelVersion, prepared: null, isPaused: false, keys: new Map() })
  }

  processOf(url: string): Process | undefined {
    return this.#processes.get(url)
  }

  /** One token, or why there is none. A paused engine answers later. */
  sample(url: string, { salt, least }: { readonly salt: string; readonly least: PolicyVersion }) {
    const process = this.#processes.get(url)
    if (process === undefined) return 'gone' as const
    if (process.isPaused) return 'paused' as const
    const { version, keys } = process
    if (version < least && this.#options.refusesOlder !== false) return 'too old' as const
    const contextMin = Math.min(keys.get(salt) ?? version, version)
    keys.set(salt, contextMin)
    return { version, contextMin }
  }

  async #call<T>(url: string, call: string, work: (process: Process) => T): Promise<T> {
    const before = this.#processes.get(url)
    const ms = this.#options.callMs?.() ?? 0
    if (ms > 0) await this.#options.clock.sleep(ms)
    const process = this.#processes.get(url)
    if (before === undefined || process !== before || this.#options.loses?.(url, call) === true) throw new Error(`${url} does not answer`)
    this.events.push(`${url} ${call}`)
    return work(process)
  }

  isHealthy = async (url: string) => this.#processes.has(url)
  models = (url: string) => this.#call(url, 'models', () => ['fake'])
  version = (url: string) => this.#call(url, 'version', ({ version }) => version)
  load = async () => ({ running: 0, waiting: 0, kvUsage: 0, prefixQueries: 0, prefixHits: 0, generatedTokens: 0 })
  dispose = () => Promise.resolve()

  prepare(url: string, version: PolicyVersion): Promise<PreparedWeights> {
    const { published, keep = 2, betweenSteps = false } = this.#options
    return this.#call(url, `prepare ${version}`, (process) => {
      if (version > published() || version <= published() - keep) throw new Error(`there is no version ${version}`)
      process.prepared = version
      return { betweenSteps }
    })
  }

  exchange(url: string, version: PolicyVersion): Promise<ExchangedWeights> {
    return this.#call(url, `exchange ${version}`, (process) => {
      this.#serve(process, version)
      process.isPaused = false
      return { pausedSeconds: 0.001, stepSeconds: 0.02 }
    })
  }

  pause(url: string): Promise<void> {
    return this.#call(url, 'pause', (process) => {
      process.isPaused = true
    })
  }

  flip(url: string, version: PolicyVersion): Promise<void> {
    return this.#call(url, `flip ${version}`, (process) => {
      if (!process.isPaused) throw new Error('409 the engine runs')
      this.#serve(process, version)
    })
  }

  resume(url: string): Promise<void> {
    return this.#call(url, 'resume', (process) => {
      process.isPaused = false
    })
  }

  finish(url: string, version: PolicyVersion): Promise<void> {
    return this.#call(url, `finish ${version}`, (process) => {
      if (process.version !== version) throw new Error(`409 version ${process.version} serves`)
    })
  }

  #serve(process: Process, version: PolicyVersion): void {
    if (process.version === version) return
    if (process.prepared !== version) throw new Error(`409 ${version} is not prepared`)
    process.version = version
    process.prepared = null
  }
}

export interface MortalPoolOptions {
  readonly clock: Clock
  readonly engines: MortalEngines
  readonly evalTasks?: number | null
  /** Time of an episode and tokens of its turns. */
  readonly episode: (request: EpisodeRequest) => { readonly ms: number; readonly turns: readonly number[] }
}

const tries = 11

/** Episodes whose tokens come from the engine that they were sent to; a request that fails is made again for a while, from its beginning. */
export class MortalPool implements EpisodePool {
  readonly name = 'mortal'
  readonly tasks = null
  readonly evalTasks: number | null
  readonly scoring = 'rollout'
  readonly requests: EpisodeRequest[] = []
  /** Rollouts of which an attempt ended with an error. */
  readonly failed: string[] = []
  readonly #options: MortalPoolOptions

  constructor(options: MortalPoolOptions) {
    this.#options = options
    this.evalTasks = options.evalTasks ?? null
  }

  async run(
    request: EpisodeRequest,
    { signal, onTurn }: { signal: AbortSignal; onTurn?: (turn: Turn, attempt: number) => void },
  ): Promise<EpisodeResult> {
    const { clock, episode } = this.#options
    this.requests.push(request)
    const { ms, turns: lengths } = episode(request)
    const tokenMs = ms / lengths.reduce((sum, length) => sum + length, 0)
    const beginMs = clock.nowMs()
    const turns: Turn[] = []
    let history = [1, 2]
    const end = (more: Pick<EpisodeResult, 'reward' | 'stopCondition'> & Partial<EpisodeResult>): EpisodeResult => {
      const s = (clock.nowMs() - beginMs) / 1000
      return {
        ...{ metrics: {}, timing: { total: s, generation: s, model: s, scoring: 0 }, isTruncated: false, extensionBreaks: 0, state: {} },
        ...{ taskId: String(request.taskIndex), turns, ...more },
      }
    }
    const fail = (type: string) => {
      this.failed.push(request.rolloutId)
      return end({ reward: null, stopCondition: 'error', error: { type, message: type } })
    }
    for (const length of lengths) {
      let answer: Awaited<ReturnType<MortalPool['request']>>
      for (let attempt = 0; ; attempt++) {
        answer = await this.request(request, length, tokenMs, signal)
        if (signal.aborted) return { ...fail('Cancelled'), turns: [] }
        if (typeof answer !== 'string') break
        if (attempt + 1 >= tries) return fail('EngineUnavailable')
        await clock.sleep(Math.min(5000, 100 * 2 ** attempt), signal)
      }
      const ids = answer.versions.map((_, index) => 10 + index)
      const turn: Turn = {
        ...{ promptIds: Uint32Array.from(history), completionIds: Uint32Array.from(ids), temperature: 1, finishReason: 'stop' },
        logprobs: new Float32Array(length).fill(-1),
        versions: Uint32Array.from(answer.versions),
        contextVersionsMin: Uint32Array.from(answer.contexts),
      }
      turns.push(turn)
      onTurn?.(turn, 0)
      history = [...history, ...ids, 3]
    }
    return end({ reward: Number(request.rolloutId.split('.').at(-1)), stopCondition: 'completed' })
  }

  async request(request: EpisodeRequest, length: number, tokenMs: number, signal: AbortSignal) {
    const { clock, engines } = this.#options
    const [versions, contexts]: [number[], number[]] = [[], []]
    let process: object | undefined
    while (versions.length < length && !signal.aborted) {
      await clock.sleep(tokenMs, signal)
      const current = engines.processOf(request.baseUrl)
      // The connection broke with the process.
      if (process !== undefined && current !== process) return 'gone' as const
      process = current
      const least = Number(request.headers['X-Min-Weight-Version'] ?? 0)
      const token = engines.sample(request.baseUrl, { salt: request.salt, least: versions.length === 0 ? least : 0 })
      if (token === 'paused') continue
      if (typeof token === 'string') return token
      versions.push(token.version)
      contexts.push(token.contextMin)
    }
    return { versions, contexts }
  }

  async runGroup(): Promise<EpisodeResult[]> {
    throw new Error('these episodes run alone')
  }
}
