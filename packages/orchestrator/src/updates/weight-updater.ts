import { type Logger, type PolicyVersion, TrilithonError } from '@trilithon/core'
import type { EngineAdmin } from '../fleet/engine-admin.ts'
import type { LiveFleet } from '../fleet/live-fleet.ts'
import type { Clock } from '../run/clock.ts'

export interface WeightUpdaterOptions {
  readonly admin: EngineAdmin
  readonly fleet: LiveFleet
  readonly clock: Clock
  readonly log: Logger
  /** Folder of a published version. */
  readonly folderOf: (version: PolicyVersion) => string
  /** Cancels what would be too old, and resolves when that is acknowledged; before any engine pauses, because only a running engine can let requests go. */
  readonly onPending: (version: PolicyVersion) => Promise<void>
  /** Nothing new starts from here until `onEnd`. */
  readonly onPause: () => void
  /** Every engine that is left serves it. Called while they are paused. */
  readonly onServed: (version: PolicyVersion) => void
  readonly onEnd: () => void
  /** Takes what runs on an engine that failed elsewhere. */
  readonly onEngineFailed: (engine: string) => void
}

export interface UpdateTimes {
  /** Of the whole update, and of the part in which engines were paused. Seconds. */
  readonly update: number
  readonly pause: number
  readonly prepare: number
  readonly cancel: number
}

/**
 * Brings a version to all engines: prepare beside what serves, cancel what would be too old, pause, flip, resume, free the old. An engine that fails is left
 * alone from then on, paused or not; when none is left the update throws `ENGINE_FAILED` with what the engines said.
 */
export class WeightUpdater {
  readonly #options: WeightUpdaterOptions
  times: UpdateTimes = { update: 0, pause: 0, prepare: 0, cancel: 0 }
  updates = 0

  constructor(options: WeightUpdaterOptions) {
    this.#options = options
  }

  async apply(version: PolicyVersion): Promise<void> {
    const { admin, fleet, clock, log, folderOf, onPending, onPause, onServed, onEnd } = this.#options
    const begin = clock.nowMs()
    const folder = folderOf(version)
    await this.#all((engine) => admin.prepare(engine, version, folder))
    const prepared = clock.nowMs()
    await onPending(version)
    const cancelled = clock.nowMs()
    onPause()
    try {
      await this.#all((engine) => admin.pause(engine), 'paused')
      await this.#all((engine) => admin.flip(engine, version))
      for (const engine of this.#live()) fleet.change(engine, { policyVersion: version })
      onServed(version)
    } finally {
      await this.#all((engine) => admin.resume(engine), 'ready')
      onEnd()
    }
    const resumed = clock.nowMs()
    await this.#all((engine) => admin.finish(engine, version))
    const seconds = (from: number, to: number) => (to - from) / 1000
    this.times = {
      ...{ prepare: seconds(begin, prepared), cancel: seconds(prepared, cancelled), pause: seconds(cancelled, resumed) },
      update: seconds(begin, clock.nowMs()),
    }
    this.updates++
    log.debug('weights updated', { version, ...this.times })
  }

  #live(): string[] {
    const { fleet } = this.#options
    return fleet.engines.filter((engine) => fleet.stateOf(engine) !== 'failed')
  }

  /** All engines that are left, at the same time; each is in `state` when its call is done. */
  async #all(call: (engine: string) => Promise<void>, state?: 'paused' | 'ready'): Promise<void> {
    const { fleet, log, onEngineFailed } = this.#options
    const engines = this.#live()
    const reasons: unknown[] = []
    await Promise.all(
      engines.map(async (engine) => {
        try {
          await call(engine)
          if (state !== undefined) fleet.change(engine, { state })
        } catch (reason) {
          reasons.push(reason)
          log.error('an engine failed and is not used any more', { engine, error: reason })
          fleet.change(engine, { state: 'failed' })
          onEngineFailed(engine)
        }
      }),
    )
    if (engines.length > 0 && reasons.length === engines.length) throw noEngineLeft(reasons)
  }
}

function noEngineLeft(reasons: readonly unknown[]): TrilithonError {
  const [first] = reasons
  const texts = new Set(reasons.map((reason) => (reason instanceof Error ? reason.message : String(reason))))
  return new TrilithonError('ENGINE_FAILED', `No engine is left: ${[...texts].join('; ')}`, {
    hint: 'Look into the log of the engine.',
    cause: first,
  })
}
