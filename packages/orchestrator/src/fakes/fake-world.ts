import { type Logger, type PolicyVersion, type Router, type Sample, silentLogger, type Turn } from '@trilithon/core'
import type { EpisodeRequest, EpisodeResult } from '@trilithon/environments'
import type { RoleEvent } from '@trilithon/monitor'
import { defaultAdvantage } from '../advantage/advantage.ts'
import type { EpisodePool } from '../dispatch/group-plan.ts'
import type { EvalEnvironment } from '../evals/eval-runs.ts'
import { createFilters } from '../filters/rollout-filter.ts'
import type { EngineAdmin, ExchangedWeights, PreparedWeights } from '../fleet/engine-admin.ts'
import { LiveFleet } from '../fleet/live-fleet.ts'
import type { Progress } from '../progress/progress.ts'
import type { Clock } from '../run/clock.ts'
import type { OrchestratorParts, RunSettings } from '../run/orchestrator-parts.ts'
import { Wake } from '../run/wake.ts'
import { VersionHolds } from '../updates/version-holds.ts'

/** Engines that keep what runs while they are paused, and tell the order of what was done to them. */
export class FakeEngines implements EngineAdmin {
  readonly events: string[] = []
  served: PolicyVersion
  /** Set to make a call fail. */
  fails: (engine: string, call: string) => Error | undefined = () => undefined
  callMs = 0
  /** Which of them change weights between two steps by themselves. */
  betweenSteps: (engine: string) => boolean = () => false
  /** What they do with the folder that they are told. */
  opens: (folder: string) => void = () => undefined
  #prepared: PolicyVersion | null = null
  readonly #paused = new Set<string>()
  #resumed: (() => void)[] = []
  readonly #clock: Clock

  constructor(clock: Clock, version: PolicyVersion = 0) {
    this.#clock = clock
    this.served = version
  }

  async #call(engine: string, call: string): Promise<void> {
    if (this.callMs > 0) await this.#clock.sleep(this.callMs)
    const failure = this.fails(engine, call)
    if (failure !== undefined) {
      // What ran there is run elsewhere, and waits for it no more.
      this.#resume(engine)
      throw failure
    }
    this.events.push(call)
  }

  get isPaused(): boolean {
    return this.#paused.size > 0
  }

  #resume(engine: string): void {
    this.#paused.delete(engine)
    if (!this.isPaused) for (const resolve of this.#resumed.splice(0)) resolve()
  }

  isHealthy = async () => true
  models = async () => ['fake']
  version = async () => this.served
  load = async () => ({ running: 0, waiting: 0, kvUsage: 0, prefixQueries: 0, prefixHits: 0, generatedTokens: 0 })
  dispose = () => Promise.resolve()

  async prepare(engine: string, version: PolicyVersion, folder: string): Promise<PreparedWeights> {
    await this.#call(engine, `prepare ${version}`)
    this.opens(folder)
    this.#prepared = version
    return { betweenSteps: this.betweenSteps(engine) }
  }

  /** A step takes none of the clock's time here, so neither does the pause. */
  async exchange(engine: string, version: PolicyVersion): Promise<ExchangedWeights> {
    await this.#call(engine, `exchange ${version}`)
    if (this.#prepared !== version && this.served !== version) throw new Error(`${version} is not prepared`)
    this.served = version
    return { pausedSeconds: 0.001, stepSeconds: 0.02 }
  }

  async pause(engine: string): Promise<void> {
    await this.#call(engine, 'pause')
    this.#paused.add(engine)
  }

  async flip(engine: string, version: PolicyVersion): Promise<void> {
    await this.#call(engine, `flip ${version}`)
    if (!this.#paused.has(engine)) throw new Error('the engine runs')
    if (this.#prepared !== version && this.served !== version) throw new Error(`${version} is not prepared`)
    this.served = version
  }

  async resume(engine: string): Promise<void> {
    await this.#call(engine, 'resume')
    this.#resume(engine)
  }

  async finish(engine: string, version: PolicyVersion): Promise<void> {
    await this.#call(engine, `finish ${version}`)
  }

  async running(signal: AbortSignal): Promise<void> {
    while (this.isPaused && !signal.aborted)
      await new Promise<void>((resolve) => {
        this.#resumed.push(resolve)
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
  }
}

export interface FakeEpisode {
  readonly ms: number
  /** Tokens per turn; each takes its part of the time and has the version that serves at its end. */
  readonly turns?: readonly number[]
  readonly reward?: number
  readonly error?: { readonly type: string; readonly message: string }
}

export interface FakePoolOptions {
  readonly name?: string
  readonly tasks?: number | null
  readonly evalTasks?: number | null
  readonly scoring?: 'rollout' | 'group'
  readonly clock: Clock
  readonly engines: FakeEngines
  readonly episode: (request: EpisodeRequest) => FakeEpisode
  /** Time until a cancelled episode is acknowledged. */
  readonly cancelMs?: number
}

/** Episodes that take time and sample tokens of whatever version serves. */
export class FakePool implements EpisodePool {
  readonly name: string
  readonly tasks: number | null
  readonly evalTasks: number | null
  readonly scoring: 'rollout' | 'group'
  readonly requests: EpisodeRequest[] = []
  readonly cancelled: string[] = []
  inFlight = 0
  mostInFlight = 0
  readonly #options: FakePoolOptions

  constructor(options: FakePoolOptions) {
    const { name = 'fake', tasks = null, evalTasks = 8, scoring = 'rollout' } = options
    this.name = name
    this.tasks = tasks
    this.evalTasks = evalTasks
    this.scoring = scoring
    this.#options = options
  }

  async run(
    request: EpisodeRequest,
    { signal, onTurn }: { signal: AbortSignal; onTurn?: (turn: Turn, attempt: number) => void },
  ): Promise<EpisodeResult> {
    const { clock, engines, episode } = this.#options
    this.requests.push(request)
    this.mostInFlight = Math.max(this.mostInFlight, ++this.inFlight)
    const { ms, turns: lengths = [2], reward = 1, error } = episode(request)
    const total = lengths.reduce((sum, length) => sum + length, 0)
    const beginMs = clock.nowMs()
    if (total === 0) await clock.sleep(ms, signal)
    let history = [1, 2]
    const turns: Turn[] = []
    for (const length of lengths) {
      const versions: number[] = []
      for (let token = 0; token < length && !signal.aborted; token++) {
        await clock.sleep(ms / Math.max(1, total), signal)
        await engines.running(signal)
        versions.push(engines.served)
      }
      if (signal.aborted) break
      const ids = versions.map((_, index) => 10 + index)
      const turn: Turn = {
        ...{ promptIds: Uint32Array.from(history), completionIds: Uint32Array.from(ids), temperature: 1, finishReason: 'stop' },
        logprobs: new Float32Array(length).fill(-1),
        versions: Uint32Array.from(versions),
        contextVersionsMin: Uint32Array.from(versions, () => Number(request.salt)),
      }
      turns.push(turn)
      onTurn?.(turn, 0)
      history = [...history, ...ids, 3]
    }
    this.inFlight--
    const s = (clock.nowMs() - beginMs) / 1000
    const common = {
      ...{ metrics: {}, timing: { total: s, generation: s, model: s, scoring: 0 }, isTruncated: false, extensionBreaks: 0, state: {} },
      taskId: String(request.taskIndex),
    }
    if (signal.aborted) {
      this.cancelled.push(request.rolloutId)
      await clock.sleep(this.#options.cancelMs ?? 0)
      engines.events.push('acknowledged')
      return { ...common, turns: [], reward: null, stopCondition: 'error', error: { type: 'Cancelled', message: 'cancelled' } }
    }
    if (error !== undefined) return { ...common, turns, reward: null, stopCondition: 'error', error }
    return { ...common, turns, reward, stopCondition: 'completed' }
  }

  async runGroup(
    episodes: readonly EpisodeRequest[],
    options: { signal: AbortSignal; onTurn?: (turn: Turn, attempt: number) => void },
  ): Promise<EpisodeResult[]> {
    return Promise.all(episodes.map((episode) => this.run(episode, options)))
  }
}

/** Takes batches and publishes versions, in the time that it is told to take. */
export class FakeTrainer {
  readonly batches: { readonly step: number; readonly samples: readonly Sample[]; readonly progress: Progress; readonly atMs: number }[] =
    []
  idleMs = 0
  published: PolicyVersion
  readonly #clock: Clock
  readonly #stepMs: number
  readonly #wake = new Wake()
  readonly #queue: number[] = []
  readonly #listeners = new Set<() => void>()

  constructor(clock: Clock, stepMs: number, version: PolicyVersion = 0) {
    this.#clock = clock
    this.#stepMs = stepMs
    this.published = version
  }

  readonly sender = {
    send: async (step: number, samples: readonly Sample[], progress: object): Promise<void> => {
      this.batches.push({ step, samples, progress: progress as Progress, atMs: this.#clock.nowMs() })
      this.#queue.push(step)
      this.#wake.wake()
    },
  }

  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', this.#wake.wake, { once: true })
    while (!signal.aborted) {
      const sinceMs = this.#clock.nowMs()
      while (this.#queue.length === 0 && !signal.aborted) await this.#wake.next()
      this.idleMs += this.#clock.nowMs() - sinceMs
      const step = this.#queue.shift()
      if (step === undefined) return
      await this.#clock.sleep(this.#stepMs, signal)
      this.published = step + 1
      for (const listener of this.#listeners) listener()
    }
  }

  readonly watchVersions: OrchestratorParts['watchVersions'] = async (onVersion, { signal, above }) => {
    const wake = new Wake()
    this.#listeners.add(wake.wake)
    signal.addEventListener('abort', wake.wake, { once: true })
    let last = above
    while (!signal.aborted) {
      if (this.published > last) {
        last = this.published
        await onVersion(last)
      } else await wake.next()
    }
    this.#listeners.delete(wake.wake)
  }
}

export const fakeSettings: RunSettings = {
  ...{ maxSteps: 3, batchSize: 8, tokenBatchSize: null, maxInflight: 8, tasksPerMinute: null, seqLen: 64 },
  ...{
    maxAsyncLevel: 1,
    maxOffPolicySteps: 8,
    checkpointInterval: null,
    skipsFirstEval: false,
    logInterval: 10,
    profile: 'fp32',
    recoveryS: 0,
    stallTimeoutS: null,
    checkedModel: 'fake',
    pollsEngines: false,
  },
}

export interface FakePartsOptions {
  readonly clock: Clock
  readonly engines: FakeEngines
  readonly trainer: Pick<FakeTrainer, 'sender' | 'watchVersions'>
  readonly pools: readonly FakePool[]
  readonly groupSize?: number
  readonly settings?: Partial<RunSettings>
  readonly evals?: readonly EvalEnvironment[]
  readonly engineUrls?: readonly string[]
  readonly log?: Logger
  /** As a run has it; a test hands over the built-in one. */
  readonly router: Router
}

/** Parts of an orchestrator around fakes; `events` and `records` are what it reported and saved. */
export function fakeParts(
  options: FakePartsOptions,
): OrchestratorParts & { readonly events: RoleEvent[]; readonly records: Map<string, readonly object[]> } {
  const {
    clock,
    engines,
    trainer,
    pools,
    groupSize = 4,
    settings,
    evals = [],
    engineUrls = ['http://engine.test'],
    log = silentLogger,
    router,
  } = options
  const fleet = new LiveFleet(
    engineUrls.map((url) => ({ url, adminUrl: url, ranks: 1 })),
    clock,
  )
  for (const url of engineUrls) fleet.change(url, { state: 'ready', policyVersion: engines.served })
  const events: RoleEvent[] = []
  const records = new Map<string, readonly object[]>()
  const advantage = defaultAdvantage({ length_penalty: null, length_weighted_baseline: false, normalize_by_deviation: false })
  return {
    settings: { ...fakeSettings, ...settings },
    train: pools.map((pool) => ({
      environment: { name: pool.name, pool, split: 'train', sampling: { temperature: 1 }, maxSeqLen: 64, leaseMs: null },
      ...{ groupSize, advantage, ratio: null },
    })),
    evals,
    preFilters: [],
    postFilters: createFilters([], 100),
    router,
    fleet,
    admin: engines,
    facts: { model: 'fake', headersOf: () => ({}), apiKeyVar: null, wantsRoutedExperts: false, datasetSeed: 42, routerUrl: null },
    sender: trainer.sender,
    watchVersions: trainer.watchVersions,
    folderOf: (version) => `/broadcasts/step_${version}`,
    holds: new VersionHolds(() => ({ release: () => undefined })),
    files: {
      saveRecords: async (step, name, lines) => {
        records.set(`step_${step}/${name}`, lines)
      },
      saveCheckpoint: null,
    },
    clock,
    log,
    report: (event) => events.push(event),
    progress: null,
    version: engines.served,
    isResume: false,
    events,
    records,
  }
}
