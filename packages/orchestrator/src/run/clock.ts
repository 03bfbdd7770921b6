/** Time as the orchestrator sees it, so that a test can own it. */
export interface Clock {
  /** Monotonic milliseconds. */
  nowMs(): number
  /** Resolves after that time, or at once when the signal aborts: callers look at their signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The clock of the machine. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const timer = setTimeout(finish, ms)
      function finish() {
        clearTimeout(timer)
        signal?.removeEventListener('abort', finish)
        resolve()
      }
      signal?.addEventListener('abort', finish, { once: true })
    }),
}
