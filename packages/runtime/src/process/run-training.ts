import type { Logger } from '@trilithon/core'
import { awaitRun } from './await-run.ts'
import { type LifecycleResult, runLifecycle } from './lifecycle.ts'

/** A checkpoint of a large model takes as long as its disk does; a second signal ends at once. */
const disposeTimeoutMs = 600_000

/** Runs a computing thread from start to end. By a signal it writes what is due. */
export function runTraining(start: (signal: AbortSignal) => Promise<unknown>, log: Logger): Promise<LifecycleResult> {
  return runLifecycle((context) => awaitRun(context, 'the training thread', start(context.signal)), { log, disposeTimeoutMs })
}
