import { invariant } from '@trilithon/core'
import type { TrainerConfiguration } from '@trilithon/trainer/configuration'
import type { Composition } from '../compose/composition.ts'
import { writeResolved } from '../report/write-resolved.ts'
import { createLogger, logLevelOf } from './create-logger.ts'
import type { LifecycleResult } from './lifecycle.ts'
import { runTraining } from './run-training.ts'
import type { StartOptions } from './start-sft.ts'

/** Runs the trainer of RL from a composition of the root `trainer`. Resolves to how it ended; throws what is wrong before anything starts. */
export async function startTrainer(composition: Composition, { environment, output, colors }: StartOptions): Promise<LifecycleResult> {
  const config = composition.resolved.trainer as TrainerConfiguration | undefined
  invariant(config !== undefined, 'a composition of trainer has a configuration of trainer')
  // The trainer brings the native addon; nothing but a start loads it.
  const { prepareRl, runRl } = await import('@trilithon/trainer')
  const setup = prepareRl({ config, workingDirectory: composition.run.workingDirectory, environment })
  writeResolved(composition)
  const log = await createLogger({ level: logLevelOf(config.log.level), json: config.log.json_logging, colors, name: 'trainer' })
  return runTraining((signal) => runRl({ setup, output, log, signal }), log)
}
