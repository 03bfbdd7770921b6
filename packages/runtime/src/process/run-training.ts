import type { Logger } from '@trilithon/core'
import { type LifecycleResult, runLifecycle } from './lifecycle.ts'

/** A checkpoint of a large model takes as long as its disk does; a second signal ends at once. */
const disposeTimeoutMs = 600_000

/** Runs a training thread from start to end. By a signal it writes what is due; a failure to do so is said, though nobody waits for the body then. */
export function runTraining(start: (signal: AbortSignal) => Promise<unknown>, log: Logger): Promise<LifecycleResult> {
  return runLifecycle(
    async ({ signal, onDispose }) => {
      const run = start(signal)
      let isReported = false
      onDispose('the training thread', async () => {
        try {
          await run
        } catch (error) {
          // By a signal the body is not waited for, so a checkpoint that could not be written is said here.
          if (!isReported) throw error
        }
      })
      try {
        await run
      } catch (error) {
        isReported = !signal.aborted
        throw error
      }
    },
    { log, disposeTimeoutMs },
  )
}
