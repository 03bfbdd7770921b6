import type { Logger, PolicyVersion } from '@trilithon/core'
import { z } from 'zod'
import type { EngineLoad } from '../fleet/engine-admin.ts'
import { AimdLimit } from './aimd-limit.ts'
import { EnginePressure } from './engine-pressure.ts'
import { type ShippedBatch, TrainerDemand } from './trainer-demand.ts'

/** `adaptive_concurrency`. */
export interface AdaptiveSettings {
  /** null: a batch. */
  readonly initialRollouts: number | null
  /** null: the largest group. */
  readonly minRollouts: number | null
  readonly kvCacheUsageLimit: number
}

/** The limits as a run that goes on takes them up. */
export const ConcurrencyPosition = z.strictObject({ train_rollouts: z.int().min(1), total_rollouts: z.int().min(1) })
export type ConcurrencyPosition = z.output<typeof ConcurrencyPosition>

export interface AdaptiveConcurrencyOptions {
  readonly settings: AdaptiveSettings
  /** `max_inflight_rollouts`. */
  readonly max: number
  /** Rollouts of a batch; null where it is counted in tokens. */
  readonly batchSize: number | null
  readonly largestGroup: number
  readonly version: PolicyVersion
  readonly nextGroup: number
  readonly nowMs: number
  readonly saved: ConcurrencyPosition | undefined
  readonly log: Logger
}

const reasons = ['late', 'early', 'saturated', 'preempted', 'queued', 'kv_full', 'free'] as const
type Reason = (typeof reasons)[number]

/** A limit grows by this part of its upper bound, or by a group. */
const growth = 1 / 32

/**
 * How many episodes may be in flight, below `max_inflight_rollouts`. Two limits, each moved by addition and multiplication alone (AIMD), the one rule that is known to
 * settle with bare yes-or-no signals, late ones too, and without a model of engine or trainer: of training, what the trainer has use for
 * (`TrainerDemand`); of everything, what the engines bear (`EnginePressure`).
 *
 * A limit keeps groups from being begun; groups that were begun go on, and nothing that runs is ended for it. Everything follows from what was shipped, served
 * and read, and when, so it is the same on the same clock.
 */
export class AdaptiveConcurrency {
  readonly #train: AimdLimit
  readonly #total: AimdLimit
  readonly #demand: TrainerDemand
  readonly #pressure: EnginePressure
  readonly #largestGroup: number
  readonly #log: Logger
  #moves = noMoves()

  constructor({ settings, max, batchSize, largestGroup, version, nextGroup, nowMs, saved, log }: AdaptiveConcurrencyOptions) {
    const min = Math.min(max, settings.minRollouts ?? largestGroup)
    const step = Math.max(largestGroup, max * growth)
    const initial = saved?.train_rollouts ?? settings.initialRollouts ?? batchSize ?? max / 4
    this.#train = new AimdLimit({ initial, min, max, step })
    this.#total = new AimdLimit({ initial: saved?.total_rollouts ?? max, min, max, step })
    this.#demand = new TrainerDemand(this.#train, { version, nowMs, nextGroup })
    this.#pressure = new EnginePressure(this.#total, settings.kvCacheUsageLimit)
    this.#largestGroup = largestGroup
    this.#log = log
  }

  /** Whether a group may be begun beside what is in flight. */
  mayBegin(kind: 'train' | 'eval', inFlight: { readonly train: number; readonly eval: number }): boolean {
    if (kind === 'train' && !this.#train.admits(inFlight.train, this.#largestGroup)) return false
    return this.#total.admits(inFlight.train + inFlight.eval, this.#largestGroup)
  }

  shipped(batch: ShippedBatch): void {
    this.#pressure.shipped()
    this.#moved(this.#demand.shipped(batch))
  }

  served(version: PolicyVersion, nowMs: number): void {
    this.#moved(this.#demand.served(version, nowMs))
  }

  looked(loads: readonly EngineLoad[], inFlight: number): void {
    if (loads.length > 0) this.#moved(this.#pressure.looked(loads, inFlight))
  }

  get position(): ConcurrencyPosition {
    return { train_rollouts: this.#train.value, total_rollouts: this.#total.value }
  }

  /** The limits, and how often they moved since the values before, and why. */
  takeValues(): Record<string, number> {
    const moves = this.#moves
    this.#moves = noMoves()
    return {
      'concurrency/limit_train': this.#train.value,
      'concurrency/limit_total': this.#total.value,
      ...(this.#demand.margin === undefined ? {} : { 'concurrency/batch_margin_steps': this.#demand.margin }),
      ...Object.fromEntries(reasons.map((reason) => [`concurrency/moves/${reason}`, moves[reason]])),
    }
  }

  #moved(reason: Reason | undefined): void {
    if (reason === undefined) return
    this.#moves[reason]++
    this.#log.debug('limit on episodes in flight moved', { reason, ...this.position })
  }
}

function noMoves(): Record<Reason, number> {
  return { late: 0, early: 0, saturated: 0, preempted: 0, queued: 0, kv_full: 0, free: 0 }
}
