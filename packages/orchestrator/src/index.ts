/**
 * The orchestrator: at present the configuration of the root `orchestrator`. Importing it has no effect.
 *
 * @module
 */
export { orchestratorRoot } from './configuration/orchestrator-root.ts'
export { environmentName } from './configuration/orchestrator-rules.ts'
export type { OrchestratorConfiguration } from './configuration/orchestrator-schema.ts'
export { rendererOf } from './configuration/renderer-of.ts'
