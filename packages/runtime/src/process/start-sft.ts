import type { Composition } from '../compose/composition.ts'
import type { LifecycleResult } from './lifecycle.ts'
import type { StartOptions } from './start-options.ts'
import { startTraining } from './start-training.ts'

/** Runs supervised training from a composition of the root `sft`. Resolves to how it ended; throws what is wrong before anything starts. */
export async function startSft(composition: Composition, options: StartOptions): Promise<LifecycleResult> {
  // The trainer brings the native addon; nothing but a start loads it.
  const { prepareSft, runSft } = await import('@trilithon/trainer')
  return startTraining(composition, options, { root: 'sft', prepare: prepareSft, run: runSft })
}
