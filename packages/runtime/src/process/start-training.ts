import { invariant, type Logger } from '@trilithon/core'
import type { ViewOutput } from '@trilithon/monitor'
import type { Composition } from '../compose/composition.ts'
import { writeResolved } from '../report/write-resolved.ts'
import { createLogger, logLevelOf } from './create-logger.ts'
import type { LifecycleResult } from './lifecycle.ts'
import { runTraining } from './run-training.ts'
import type { StartOptions } from './start-options.ts'

/** What the configurations of both programs have. */
interface TrainingConfiguration {
  readonly log: { readonly level: string; readonly json_logging: boolean }
}

/** A program of the trainer. */
export interface TrainingProgram<Config, Setup> {
  readonly root: 'sft' | 'trainer'
  /** Finds what the run needs and makes its folder ready; throws what is wrong. */
  prepare(options: { readonly config: Config; readonly workingDirectory: string; readonly environment: NodeJS.ProcessEnv }): Setup
  run(options: { readonly setup: Setup; readonly output: ViewOutput; readonly log: Logger; readonly signal: AbortSignal }): Promise<unknown>
}

/** Runs a program of the trainer. Resolves to how it ended; throws what is wrong before anything starts. */
export async function startTraining<Config extends TrainingConfiguration, Setup>(
  composition: Composition,
  { environment, output, colors }: StartOptions,
  { root, prepare, run }: TrainingProgram<Config, Setup>,
): Promise<LifecycleResult> {
  const config = composition.resolved[root] as Config | undefined
  invariant(config !== undefined, `a composition of ${root} has a configuration of ${root}`)
  const setup = prepare({ config, workingDirectory: composition.run.workingDirectory, environment })
  writeResolved(composition)
  const log = await createLogger({ level: logLevelOf(config.log.level), json: config.log.json_logging, colors, name: 'trainer' })
  return runTraining((signal) => run({ setup, output, log, signal }), log)
}
