import { invariant } from '@trilithon/core'
import type { Composition } from '../compose/composition.ts'
import type { LifecycleResult } from './lifecycle.ts'
import { startEnvServer } from './start-env-server.ts'
import { startInference } from './start-inference.ts'
import type { StartOptions } from './start-options.ts'
import { startOrchestrator } from './start-orchestrator.ts'
import { startSft } from './start-sft.ts'
import { startTrainer } from './start-trainer.ts'

type Start = (composition: Composition, options: StartOptions) => Promise<LifecycleResult>

/** By root; `missing-roles.ts` says which roots may be started. `rl` starts all of these as processes, and is the launcher's. */
const starts: Readonly<Record<string, Start>> = {
  sft: startSft,
  trainer: startTrainer,
  inference: startInference,
  orchestrator: startOrchestrator,
  'env-server': startEnvServer,
}

/** Runs the one role of a composition in this process. Resolves to how it ended; throws what is wrong before anything starts. */
export function startRole(composition: Composition, options: StartOptions): Promise<LifecycleResult> {
  const start = starts[composition.root]
  invariant(start !== undefined, `a root that is started (${composition.root}) has its program`)
  return start(composition, options)
}
