import type { Clock } from '../run/clock.ts'

/** A leaky bucket: as many starts at once as fit a minute, and no more than that in any stretch of a minute after it. null has no limit. */
export class RateLimit {
  readonly #perMinute: number | null
  readonly #clock: Clock
  #level = 0
  #atMs: number

  constructor(perMinute: number | null, clock: Clock) {
    this.#perMinute = perMinute
    this.#clock = clock
    this.#atMs = clock.nowMs()
  }

  /** Milliseconds until `count` may start; 0 counts them as started. */
  take(count: number): number {
    if (this.#perMinute === null) return 0
    const nowMs = this.#clock.nowMs()
    const perMs = this.#perMinute / 60_000
    this.#level = Math.max(0, this.#level - (nowMs - this.#atMs) * perMs)
    this.#atMs = nowMs
    const wanted = Math.min(count, this.#perMinute)
    const excess = this.#level + wanted - this.#perMinute
    // Rounding must not make a wait of almost nothing.
    if (excess > 1e-9) return Math.max(1, excess / perMs)
    this.#level += wanted
    return 0
  }
}
