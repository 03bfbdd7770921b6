import { setImmediate as immediate } from 'node:timers/promises'
import type { Clock } from '../run/clock.ts'

interface Timer {
  readonly atMs: number
  readonly order: number
  readonly resolve: () => void
}

/** Time that passes only when nothing else can happen: it jumps to the next timer when all promises have settled. */
export class VirtualClock implements Clock {
  #nowMs = 0
  #order = 0
  #timers: Timer[] = []

  nowMs(): number {
    return this.#nowMs
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const finish = () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }
      const timer: Timer = { atMs: this.#nowMs + Math.max(0, ms), order: this.#order++, resolve: finish }
      const abort = () => {
        this.#timers = this.#timers.filter((one) => one !== timer)
        resolve()
      }
      signal?.addEventListener('abort', abort, { once: true })
      const place = this.#timers.findIndex((one) => one.atMs > timer.atMs)
      if (place === -1) this.#timers.push(timer)
      else this.#timers.splice(place, 0, timer)
    })
  }

  /** Runs until `work` has settled. Throws where it waits for something that is not a timer. */
  async run<T>(work: Promise<T>, limitMs = 1_200_000): Promise<T> {
    let isDone = false
    const end = () => {
      isDone = true
    }
    work.then(end, end)
    for (let idle = 0; ; ) {
      for (let turn = 0; turn < 3; turn++) await immediate()
      if (isDone) return work
      const timer = this.#timers.shift()
      if (timer === undefined) {
        if (++idle > 2000) throw new Error(`everything waits at ${this.#nowMs} ms, and no timer is set`)
        continue
      }
      idle = 0
      if (timer.atMs > limitMs) throw new Error(`nothing has come of it after ${limitMs} ms`)
      this.#nowMs = timer.atMs
      timer.resolve()
    }
  }
}
