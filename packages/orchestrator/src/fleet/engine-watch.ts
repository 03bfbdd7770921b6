import { type Logger, type PolicyVersion, TrilithonError } from '@trilithon/core'
import type { Clock } from '../run/clock.ts'
import type { Turns } from '../run/turns.ts'
import { bringEngine } from '../updates/bring-engine.ts'
import type { EngineAdmin } from './engine-admin.ts'
import type { LiveFleet } from './live-fleet.ts'

export interface EngineWatchOptions {
  readonly admin: EngineAdmin
  readonly fleet: LiveFleet
  readonly clock: Clock
  readonly log: Logger
  /** The model that an engine must serve; null does not ask. */
  readonly model: string | null
  /** Seconds that the run waits for an engine when none is left. */
  readonly recoveryS: number
  readonly folderOf: (version: PolicyVersion) => string
  /** The version that the run serves now. */
  readonly policy: { readonly version: PolicyVersion }
  /** A version that no engine was left for; undefined where there is none. */
  readonly missed: () => PolicyVersion | undefined
  /** Brings it to the engines that are there, as the update that it is. */
  readonly update: (version: PolicyVersion, signal: AbortSignal) => Promise<void>
  /** Shared with the updates: no engine changes in the middle of one. */
  readonly turns: Turns
  /** Takes what runs on an engine that is lost elsewhere. */
  readonly onLost: (engine: string) => void
}

const lookMs = 1000
/** So many looks in a row without an answer lose an engine. */
const misses = 3
const longestRetryMs = 30_000

/**
 * Looks at every engine all the time. One that gives no answer is lost, and so is one that serves another version than it was brought to, because another process
 * answers in its place: what runs there runs elsewhere. One that is lost and answers again is brought to the version that the run serves now, and is used again.
 */
export class EngineWatch {
  readonly #options: EngineWatchOptions
  readonly #lastReasons = new Map<string, string>()
  /** Since when no engine is left. */
  #goneMs: number | undefined

  constructor(options: EngineWatchOptions) {
    this.#options = options
  }

  /** Looks after one engine until the signal aborts. Throws `ENGINE_FAILED` when none is left for longer than the run may wait. */
  async run(engine: string, signal: AbortSignal): Promise<void> {
    const { clock, admin } = this.#options
    let missed = 0
    let retryMs = lookMs
    while (!signal.aborted) {
      await clock.sleep(this.#isLost(engine) ? retryMs : lookMs, signal)
      if (signal.aborted) return
      const isLost = this.#isLost(engine)
      const answers = await admin.isHealthy(engine, signal)
      if (signal.aborted) return
      missed = answers ? 0 : missed + 1
      if (isLost) {
        const isBack = answers && (await this.#takeBack(engine, signal))
        // Reading a version again and again costs a machine more than waiting.
        retryMs = answers && !isBack ? Math.min(longestRetryMs, 2 * retryMs) : lookMs
      } else if (missed >= misses && this.#mayLose(engine)) await this.#lose(engine, signal)
      else if (answers) await this.#checkVersion(engine, signal)
      if (!signal.aborted) this.#refuseToWaitLonger()
    }
  }

  /** Engines that are used. */
  get ready(): number {
    return this.#options.fleet.engines.filter((engine) => !this.#isLost(engine)).length
  }

  /** Something else lost an engine. */
  note(engine: string, reason: unknown): void {
    this.#lastReasons.set(engine, reason instanceof Error ? reason.message : String(reason))
  }

  get isEmpty(): boolean {
    return this.ready === 0
  }

  #isLost(engine: string): boolean {
    return this.#options.fleet.stateOf(engine) === 'failed'
  }

  /** The last engine is not lost by silence where nobody brings it back: its requests are tried again for a while, and it may answer them. */
  #mayLose(engine: string): boolean {
    const { fleet, recoveryS } = this.#options
    return recoveryS > 0 || fleet.engines.some((one) => one !== engine && fleet.stateOf(one) === 'ready')
  }

  /** One that is silent while it is updated may answer behind that. */
  #lose(engine: string, signal: AbortSignal): Promise<void> {
    return this.#options.turns.take(async () => {
      const answers = await this.#options.admin.isHealthy(engine, signal)
      if (!answers && !signal.aborted) this.#markLost(engine, 'it does not answer')
    })
  }

  #markLost(engine: string, reason: string): void {
    if (this.#isLost(engine)) return
    const { fleet, log, onLost } = this.#options
    this.#lastReasons.set(engine, reason)
    log.warn('an engine is lost; what it ran runs elsewhere', { engine, reason })
    fleet.change(engine, { state: 'failed', reportedRequests: 0 })
    onLost(engine)
  }

  /** An update changes the version on both sides: what differs is looked at again behind it. */
  async #checkVersion(engine: string, signal: AbortSignal): Promise<void> {
    const { turns } = this.#options
    if (!(await this.#differs(engine, signal))) return
    await turns.take(async () => {
      if (this.#isLost(engine) || !(await this.#differs(engine, signal))) return
      this.#markLost(engine, 'another process answers in its place')
      await this.#bring(engine, signal)
    })
  }

  async #differs(engine: string, signal: AbortSignal): Promise<boolean> {
    const { admin, fleet } = this.#options
    try {
      const version = await admin.version(engine, signal)
      return fleet.workersOf(engine).some(({ policyVersion }) => policyVersion !== version)
    } catch (error) {
      // The next look tells whether it answers at all.
      if (!signal.aborted) this.#tell(engine, error)
      return false
    }
  }

  #takeBack(engine: string, signal: AbortSignal): Promise<boolean> {
    return this.#options.turns.take(async () => !this.#isLost(engine) || (await this.#bring(engine, signal)))
  }

  /** Whether the engine is used again. One that cannot be brought to the version is tried again later. */
  async #bring(engine: string, signal: AbortSignal): Promise<boolean> {
    const { admin, fleet, log, model, folderOf, policy, missed, update } = this.#options
    const version = missed()
    try {
      if (model !== null && !(await admin.models(engine, signal)).includes(model)) throw new Error(`it does not serve ${model}`)
      fleet.change(engine, { state: 'starting', policyVersion: await admin.version(engine, signal) })
      if (version === undefined) await bringEngine({ admin, engine, version: policy.version, folderOf, signal })
      else await update(version, signal)
      fleet.change(engine, { state: 'ready', policyVersion: policy.version, reportedRequests: 0 })
    } catch (error) {
      fleet.change(engine, { state: 'failed' })
      if (!signal.aborted) this.#tell(engine, error)
      return false
    }
    this.#goneMs = undefined
    this.#lastReasons.delete(engine)
    log.info('an engine is used again', { engine, version: policy.version })
    return true
  }

  /** Once per cause. */
  #tell(engine: string, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error)
    if (this.#lastReasons.get(engine) === reason) return
    this.#lastReasons.set(engine, reason)
    this.#options.log.warn('an engine answers, and cannot be used', { engine, error })
  }

  #refuseToWaitLonger(): void {
    const { clock, log, recoveryS } = this.#options
    if (!this.isEmpty) return
    const nowMs = clock.nowMs()
    if (this.#goneMs === undefined && recoveryS > 0)
      log.warn('no engine is left: the run waits for one to come back', { seconds: recoveryS })
    this.#goneMs ??= nowMs
    if (nowMs - this.#goneMs < 1000 * recoveryS) return
    const reasons = [...this.#lastReasons].map(([engine, reason]) => `${engine}: ${reason}`)
    throw new TrilithonError('ENGINE_FAILED', `No engine came back within ${recoveryS} s. ${reasons.join('; ')}`, {
      path: 'orchestrator.student.client.recovery_timeout_seconds',
      hint: 'Look into the log of the engine, or raise the time.',
    })
  }
}
