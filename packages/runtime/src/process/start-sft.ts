import type { ViewOutput } from '@trilithon/monitor'
import type { Composition } from '../compose/composition.ts'
import type { LifecycleResult } from './lifecycle.ts'
import type { CommandLine } from './rl/plan-roles.ts'
import { startTraining } from './start-training.ts'

export interface StartOptions {
  readonly environment: NodeJS.ProcessEnv
  /** Where the run is shown. */
  readonly output: ViewOutput
  /** What starts another process like this one, for roles that are several; the name of a root and its configuration are added. */
  readonly commandLine?: CommandLine
  /** Of log lines on standard error. */
  readonly colors: boolean
}

/** Runs supervised training from a composition of the root `sft`. Resolves to how it ended; throws what is wrong before anything starts. */
export async function startSft(composition: Composition, options: StartOptions): Promise<LifecycleResult> {
  // The trainer brings the native addon; nothing but a start loads it.
  const { prepareSft, runSft } = await import('@trilithon/trainer')
  return startTraining(composition, options, { root: 'sft', prepare: prepareSft, run: runSft })
}
