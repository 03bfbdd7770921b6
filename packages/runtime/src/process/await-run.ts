import type { LifecycleContext } from './lifecycle.ts'

/**
 * Waits in the body of a lifecycle for a run that is under way, and at the end of the lifecycle as well: by a signal the body is not waited for, so a failure of
 * what the run still has to do, such as a checkpoint that cannot be written, is said at disposal. One failure is said once.
 */
export async function awaitRun({ signal, onDispose }: LifecycleContext, name: string, run: Promise<unknown>): Promise<void> {
  let isReported = false
  onDispose(name, async () => {
    try {
      await run
    } catch (error) {
      if (!isReported) throw error
    }
  })
  try {
    await run
  } catch (error) {
    isReported = !signal.aborted
    throw error
  }
}
