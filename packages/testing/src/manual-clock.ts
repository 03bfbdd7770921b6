import { invariant } from '@trilithon/core'

/** A monotonic clock that moves only when told. */
export interface ManualClock {
  nowMs(): number
  advance(ms: number): void
}

export function manualClock(startMs = 0): ManualClock {
  let now = startMs
  return {
    nowMs: () => now,
    advance(ms) {
      invariant(ms >= 0, `A monotonic clock cannot go ${ms} ms forward.`)
      now += ms
    },
  }
}
