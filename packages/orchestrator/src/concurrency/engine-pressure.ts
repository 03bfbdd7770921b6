import type { EngineLoad } from '../fleet/engine-admin.ts'
import type { AimdLimit } from './aimd-limit.ts'

export type PressureMove = 'preempted' | 'queued' | 'kv_full' | 'free'

/** Requests that wait beside those that run, as a share, from which on more in flight only wait longer. */
const longQueue = 0.05
/** An engine that computed requests for nothing is cut harder than one that is about to. */
const cuts = { preempted: 0.8, queued: 0.8, kv_full: 0.9 } as const
/** Below this share of the limit on KV the limit on episodes may grow. */
const ampleKv = 0.9

/**
 * How many episodes the engines bear, evaluations counted. Preempted requests, a queue at two looks in a row (one look may fall into an update of weights) and full
 * KV cut the limit; then nothing more is cut before what is in flight has come down to it. While none of them is there the limit grows, once a batch:
 * episodes take their KV only as they get longer.
 */
export class EnginePressure {
  readonly #limit: AimdLimit
  readonly #kvLimit: number
  #preemptions: { readonly engines: number; readonly count: number } | undefined
  #waitingBefore = 0
  #isSettling = false
  #mayGrow = false

  constructor(limit: AimdLimit, kvLimit: number) {
    this.#limit = limit
    this.#kvLimit = kvLimit
  }

  shipped(): void {
    this.#mayGrow = true
  }

  /** What moved the limit, or undefined. */
  looked(loads: readonly EngineLoad[], inFlight: number): PressureMove | undefined {
    const sum = (of: (load: EngineLoad) => number) => loads.reduce((total, load) => total + of(load), 0)
    const before = this.#preemptions
    const now = { engines: loads.length, count: sum(({ preemptions = 0 }) => preemptions) }
    // An engine that came back brings what it counted before.
    const hasPreempted = before !== undefined && before.engines === now.engines && now.count > before.count
    this.#preemptions = now
    const waiting = sum((load) => load.waiting)
    const queued = Math.min(waiting, this.#waitingBefore)
    this.#waitingBefore = waiting
    const kv = loads.reduce((most, { kvUsage }) => Math.max(most, kvUsage), 0)
    if (this.#isSettling) {
      // What was counted until now happened under the limit before.
      if (inFlight <= this.#limit.value) this.#isSettling = false
      return undefined
    }
    const isQueued = queued > longQueue * sum(({ running }) => running)
    const reason = hasPreempted ? 'preempted' : isQueued ? 'queued' : kv >= this.#kvLimit ? 'kv_full' : undefined
    if (reason !== undefined) {
      this.#isSettling = this.#limit.cut(cuts[reason])
      return this.#isSettling ? reason : undefined
    }
    if (!this.#mayGrow || waiting > 0 || kv >= ampleKv * this.#kvLimit || !this.#limit.grow()) return undefined
    this.#mayGrow = false
    return 'free'
  }
}
