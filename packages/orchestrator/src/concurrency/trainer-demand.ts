import type { PolicyVersion } from '@trilithon/core'
import type { AimdLimit } from './aimd-limit.ts'

export type DemandMove = 'late' | 'early' | 'saturated'

export interface ShippedBatch {
  readonly step: number
  readonly nowMs: number
  readonly rollouts: readonly ShippedRollout[]
  /** Number of the next group that is begun. */
  readonly nextGroup: number
}

export interface ShippedRollout {
  /** Number of its group, in the order in which groups were begun. */
  readonly group: number
  /** Seconds that its calls of the engine took, and tokens that they sampled. */
  readonly modelSeconds: number
  readonly tokens: number
}

/** A batch that comes later than this before the trainer needs it, in steps, is late; one that comes earlier than that is early. */
const lateSteps = 0.1
const earlySteps = 0.5
/** The deepest cut, of a batch that is early by a step or more. */
const deepestCut = 0.8
/** So much more in flight is enough to see in the time of a token what it brought; and this is the least share of it that more tokens a second must be. */
const probe = 1.25
const leastGain = 0.1
/** Weight of the newest in the mean time between two batches. */
const newest = 0.3

/**
 * How many episodes of training the trainer has use for. What is looked at is the margin of each batch: the time between its shipping and the trainer's taking it, in
 * steps; negative where the trainer waited for the batch. Late batches let the limit grow, early ones cut it in proportion, and between the two it rests, so the
 * trainer is kept busy by episodes that are as young as they can be. A move is judged by the first batch of which most was begun after it: episodes
 * that were under way before say nothing about it.
 *
 * Late batches of engines that are saturated are no reason to grow: with `n` in flight an engine makes `n / time of a token` tokens a second, so a time of a token
 * that grows as `n` does has brought nothing but lag. The time of a token, unlike that of a batch, has no long tail. After each quarter more in
 * flight it is compared with the one before, and where less than a tenth of the quarter became throughput, the limit goes back.
 */
export class TrainerDemand {
  readonly #limit: AimdLimit
  /** Groups from this number on were begun since the last move. */
  #mark: number
  #nextGroup: number
  #isFirst = true
  #shippedMs: number
  #stepMs: number | undefined
  #version: PolicyVersion
  #servedMs: number
  #waiting: Taken[] = []
  /** What growth is compared with. */
  #reference: Measured | undefined
  /** Of the last batch, in steps; undefined before there is one. */
  margin: number | undefined

  constructor(limit: AimdLimit, { version, nowMs, nextGroup }: { version: PolicyVersion; nowMs: number; nextGroup: number }) {
    this.#limit = limit
    this.#version = version
    this.#servedMs = this.#shippedMs = nowMs
    this.#mark = this.#nextGroup = nextGroup
  }

  /** What moved the limit, or undefined. */
  shipped({ step, nowMs, rollouts, nextGroup }: ShippedBatch): DemandMove | undefined {
    const tookMs = nowMs - this.#shippedMs
    this.#shippedMs = nowMs
    this.#nextGroup = nextGroup
    // The first one began with nothing in flight, and says nothing about how long a batch takes.
    const isFirst = this.#isFirst
    this.#isFirst = false
    if (isFirst) return undefined
    this.#stepMs = this.#stepMs === undefined ? tookMs : newest * tookMs + (1 - newest) * this.#stepMs
    const own = rollouts.filter(({ group }) => group >= this.#mark)
    const isOfMove = own.length > rollouts.length / 2
    const batch = { step, shippedMs: nowMs, mark: this.#mark, measured: isOfMove ? this.#measure(own) : undefined }
    if (this.#version >= step) return this.#judge((this.#servedMs - nowMs) / this.#stepMs, batch.measured)
    this.#waiting.push(batch)
    return undefined
  }

  /** The trainer is done with the batches before `version`, and takes the one of that number. */
  served(version: PolicyVersion, nowMs: number): DemandMove | undefined {
    this.#version = version
    this.#servedMs = nowMs
    const taken = this.#waiting.filter(({ step }) => step <= version).at(-1)
    this.#waiting = this.#waiting.filter(({ step }) => step > version)
    if (taken === undefined || this.#stepMs === undefined) return undefined
    return this.#judge((nowMs - taken.shippedMs) / this.#stepMs, taken.mark === this.#mark ? taken.measured : undefined)
  }

  #measure(rollouts: readonly ShippedRollout[]): Measured {
    const seconds = rollouts.reduce((sum, { modelSeconds }) => sum + modelSeconds, 0)
    const tokens = rollouts.reduce((sum, one) => sum + one.tokens, 0)
    return { limit: this.#limit.value, tokenSeconds: seconds / Math.max(1, tokens) }
  }

  #judge(margin: number, measured: Measured | undefined): DemandMove | undefined {
    this.margin = margin
    if (measured === undefined) return undefined
    if (margin > earlySteps) {
      const share = Math.min(1, (margin - earlySteps) / (1 - earlySteps))
      this.#reference = undefined
      return this.#moved(this.#limit.cut(1 - (1 - deepestCut) * share), 'early')
    }
    if (margin >= lateSteps) return undefined
    this.#reference ??= measured
    const more = measured.limit / this.#reference.limit
    if (more >= probe) {
      const { limit, tokenSeconds } = this.#reference
      const gain = 1 - Math.log(measured.tokenSeconds / tokenSeconds) / Math.log(more)
      this.#reference = gain < leastGain ? undefined : measured
      if (gain < leastGain) return this.#moved(this.#limit.cut(limit / measured.limit), 'saturated')
    }
    return this.#moved(this.#limit.grow(), 'late')
  }

  #moved(hasMoved: boolean, reason: DemandMove): DemandMove | undefined {
    if (!hasMoved) return undefined
    this.#mark = this.#nextGroup
    return reason
  }
}

interface Measured {
  readonly limit: number
  readonly tokenSeconds: number
}

/** A batch that the trainer has not taken. */
interface Taken {
  readonly step: number
  readonly shippedMs: number
  readonly mark: number
  /** undefined where most of it was begun before the last move. */
  readonly measured: Measured | undefined
}
