import { defineConfigurationRoot } from '@trilithon/core'
import { deriveOrchestrator } from './orchestrator-derive.ts'
import { orchestratorMoves } from './orchestrator-moves.ts'
import { orchestratorNotices, orchestratorRules } from './orchestrator-rules.ts'
import { OrchestratorSchema } from './orchestrator-schema.ts'

/** The root `orchestrator`: episodes in, batches out. */
export const orchestratorRoot = defineConfigurationRoot({
  name: 'orchestrator',
  schema: OrchestratorSchema,
  moves: orchestratorMoves,
  slots: [
    { at: 'router', defaultType: 'sticky', description: 'Chooses the engine of an episode.' },
    { at: 'weight_broadcast', defaultType: 'filesystem', description: 'How a new version of the weights reaches the engines.' },
  ],
  derive: deriveOrchestrator,
  rules: orchestratorRules,
  notices: orchestratorNotices,
})
