import { invariant } from '@trilithon/core'
import type { SftConfiguration } from '@trilithon/trainer/configuration'
import type { Composition } from '../compose/composition.ts'
import { writeResolved } from '../report/write-resolved.ts'
import { createLogger, logLevelOf } from './create-logger.ts'
import { type LifecycleResult, runLifecycle } from './lifecycle.ts'

export interface StartOptions {
  readonly environment: NodeJS.ProcessEnv
  /** Where the run is shown. */
  readonly output: { write(text: string): unknown; readonly isTTY?: boolean; readonly columns?: number | undefined }
  /** Of log lines on standard error. */
  readonly colors: boolean
}

/** A checkpoint of a large model takes as long as its disk does; a second signal ends at once. */
const disposeTimeoutMs = 600_000

/** Runs supervised training from a composition of the root `sft`. Resolves to how it ended; throws what is wrong before anything starts. */
export async function startSft(composition: Composition, { environment, output, colors }: StartOptions): Promise<LifecycleResult> {
  const config = composition.resolved.sft as SftConfiguration | undefined
  invariant(config !== undefined, 'a composition of sft has a configuration of sft')
  // The trainer brings the native addon; nothing but a start loads it.
  const { prepareSft, runSft } = await import('@trilithon/trainer')
  const setup = prepareSft({ config, workingDirectory: composition.run.workingDirectory, environment })
  writeResolved(composition)
  const log = await createLogger({ level: logLevelOf(config.log.level), json: config.log.json_logging, colors, name: 'trainer' })
  return runLifecycle(
    async ({ signal, onDispose }) => {
      const run = runSft({ setup, output, log, signal })
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
