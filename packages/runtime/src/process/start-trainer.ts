import type { Composition } from '../compose/composition.ts'
import type { LifecycleResult } from './lifecycle.ts'
import type { StartOptions } from './start-options.ts'
import { startTraining } from './start-training.ts'

/** Runs the trainer of RL from a composition of the root `trainer`. Resolves to how it ended; throws what is wrong before anything starts. */
export async function startTrainer(composition: Composition, options: StartOptions): Promise<LifecycleResult> {
  // The trainer brings the native addon; nothing but a start loads it.
  const { prepareRl, runRl } = await import('@trilithon/trainer')
  return startTraining(composition, options, { root: 'trainer', prepare: prepareRl, run: runRl })
}
