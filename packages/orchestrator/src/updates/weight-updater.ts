import { type Logger, type PolicyVersion, TrilithonError } from '@trilithon/core'
import type { EngineAdmin, ExchangedWeights } from '../fleet/engine-admin.ts'
import type { LiveFleet } from '../fleet/live-fleet.ts'
import type { Clock } from '../run/clock.ts'
import type { VersionHolds } from './version-holds.ts'

export interface WeightUpdaterOptions {
  readonly admin: EngineAdmin
  readonly fleet: LiveFleet
  readonly clock: Clock
  readonly log: Logger
  /** Folder of a published version. */
  readonly folderOf: (version: PolicyVersion) => string
  readonly holds: VersionHolds
  /** Cancels what would be too old, and resolves when that is acknowledged; before any engine pauses, because only a running engine can let requests go. */
  readonly onPending: (version: PolicyVersion) => Promise<void>
  /** Nothing new starts from here until `onEnd`. */
  readonly onPause: () => void
  /** Every engine that is left serves it. Called while they are paused. */
  readonly onServed: (version: PolicyVersion) => void
  readonly onEnd: () => void
  /** Takes what runs on an engine that failed elsewhere. */
  readonly onEngineFailed: (engine: string, reason: unknown) => void
}

/** Seconds. */
export interface UpdateTimes {
  readonly update: number
  /** The longest in which one engine took no step: as it says where it paused by itself, else between our calls. */
  readonly pause: number
  /** Of the last step of that engine before it; 0 where no engine says. */
  readonly engineStep: number
  /** In which nothing new was started. */
  readonly hold: number
  readonly prepare: number
  readonly cancel: number
}

/**
 * Brings a version to all engines: prepare beside what serves, cancel what would be too old, pause, flip, resume, free the old. An engine that offers it does the
 * middle three between two of its steps, so that its pause has no network in it; the others wait for each other's. An engine that fails is left
 * alone until its watch takes it back, paused or not; when none is left the update throws `ENGINE_FAILED` with what the engines said.
 */
export class WeightUpdater {
  readonly #options: WeightUpdaterOptions
  times: UpdateTimes = { update: 0, pause: 0, engineStep: 0, hold: 0, prepare: 0, cancel: 0 }
  updates = 0

  constructor(options: WeightUpdaterOptions) {
    this.#options = options
  }

  /**
   * False where the version was tidied away meanwhile, because there are newer ones: then nothing was done. The signal ends it with its reason; engines that were paused
   * are resumed first.
   */
  async apply(version: PolicyVersion, signal?: AbortSignal): Promise<boolean> {
    const { admin, clock, log, folderOf, holds, onPending, onPause, onEnd } = this.#options
    const begin = clock.nowMs()
    if (!holds.begin(version)) {
      log.debug('a version was overtaken', { version })
      return false
    }
    const folder = folderOf(version)
    const alone = new Set<string>()
    await this.#all(
      async (engine) => {
        if ((await admin.prepare(engine, version, folder, signal)).betweenSteps) alone.add(engine)
      },
      { signal },
    )
    const prepared = clock.nowMs()
    await onPending(version)
    const cancelled = clock.nowMs()
    onPause()
    let longest: ExchangedWeights
    try {
      longest = await this.#exchange(version, alone, signal)
    } finally {
      onEnd()
    }
    const exchanged = clock.nowMs()
    await this.#all((engine) => admin.finish(engine, version, signal), { signal })
    const seconds = (from: number, to: number) => (to - from) / 1000
    this.times = {
      ...{ prepare: seconds(begin, prepared), cancel: seconds(prepared, cancelled), hold: seconds(cancelled, exchanged) },
      ...{ pause: longest.pausedSeconds, engineStep: longest.stepSeconds, update: seconds(begin, clock.nowMs()) },
    }
    this.updates++
    log.debug('weights updated', { version, ...this.times })
    return true
  }

  /** Resolves to the longest pause of an engine when all run again. */
  async #exchange(version: PolicyVersion, alone: ReadonlySet<string>, signal: AbortSignal | undefined): Promise<ExchangedWeights> {
    const { admin, fleet, clock, holds, onServed } = this.#options
    const others = (engine: string) => !alone.has(engine)
    let longest: ExchangedWeights = { pausedSeconds: 0, stepSeconds: 0 }
    await this.#all(
      async (engine) => {
        const exchanged = await admin.exchange(engine, version, signal)
        if (exchanged.pausedSeconds >= longest.pausedSeconds) longest = exchanged
      },
      { of: (engine) => alone.has(engine), state: 'ready', signal },
    )
    const begin = clock.nowMs()
    try {
      await this.#all((engine) => admin.pause(engine, signal), { of: others, state: 'paused', signal })
      await this.#all((engine) => admin.flip(engine, version, signal), { of: others, signal })
      for (const engine of this.#live()) fleet.change(engine, { policyVersion: version })
      holds.served(version)
      onServed(version)
    } finally {
      await this.#all((engine) => admin.resume(engine, signal), { of: others, state: 'ready', signal })
    }
    const pausedSeconds = (clock.nowMs() - begin) / 1000
    return this.#live().some(others) && pausedSeconds > longest.pausedSeconds ? { pausedSeconds, stepSeconds: 0 } : longest
  }

  #live(): string[] {
    const { fleet } = this.#options
    return fleet.engines.filter((engine) => fleet.stateOf(engine) !== 'failed')
  }

  /** All engines that are left, or those `of` them, at the same time; each is in `state` when its call is done. Throws when the last engine fails. */
  async #all(call: (engine: string) => Promise<void>, { of = () => true, state, signal }: CallOptions = {}): Promise<void> {
    const { fleet, log, onEngineFailed } = this.#options
    const engines = this.#live().filter(of)
    const reasons: unknown[] = []
    await Promise.all(
      engines.map(async (engine) => {
        try {
          await call(engine)
          if (state !== undefined) fleet.change(engine, { state })
        } catch (reason) {
          // The run ends, and says nothing of the engine.
          if (signal?.aborted) return
          reasons.push(reason)
          log.error('an engine failed and is not used', { engine, error: reason })
          fleet.change(engine, { state: 'failed', reportedRequests: 0 })
          onEngineFailed(engine, reason)
        }
      }),
    )
    signal?.throwIfAborted()
    if (reasons.length > 0 && this.#live().length === 0) throw noEngineLeft(reasons)
  }
}

interface CallOptions {
  readonly of?: (engine: string) => boolean
  readonly state?: 'paused' | 'ready'
  readonly signal?: AbortSignal | undefined
}

function noEngineLeft(reasons: readonly unknown[]): TrilithonError {
  const [first] = reasons
  const texts = new Set(reasons.map((reason) => (reason instanceof Error ? reason.message : String(reason))))
  return new TrilithonError('ENGINE_FAILED', `No engine is left: ${[...texts].join('; ')}`, {
    hint: 'Look into the log of the engine.',
    cause: first,
  })
}
