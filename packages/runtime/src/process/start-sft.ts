import { invariant } from '@trilithon/core'
import type { ViewOutput } from '@trilithon/monitor'
import type { SftConfiguration } from '@trilithon/trainer/configuration'
import type { Composition } from '../compose/composition.ts'
import { writeResolved } from '../report/write-resolved.ts'
import { createLogger, logLevelOf } from './create-logger.ts'
import type { LifecycleResult } from './lifecycle.ts'
import { runTraining } from './run-training.ts'

export interface StartOptions {
  readonly environment: NodeJS.ProcessEnv
  /** Where the run is shown. */
  readonly output: ViewOutput
  /** Of log lines on standard error. */
  readonly colors: boolean
}

/** Runs supervised training from a composition of the root `sft`. Resolves to how it ended; throws what is wrong before anything starts. */
export async function startSft(composition: Composition, { environment, output, colors }: StartOptions): Promise<LifecycleResult> {
  const config = composition.resolved.sft as SftConfiguration | undefined
  invariant(config !== undefined, 'a composition of sft has a configuration of sft')
  // The trainer brings the native addon; nothing but a start loads it.
  const { prepareSft, runSft } = await import('@trilithon/trainer')
  const setup = prepareSft({ config, workingDirectory: composition.run.workingDirectory, environment })
  writeResolved(composition)
  const log = await createLogger({ level: logLevelOf(config.log.level), json: config.log.json_logging, colors, name: 'trainer' })
  return runTraining((signal) => runSft({ setup, output, log, signal }), log)
}
