/**
 * The orchestrator: at present the configuration of the root `orchestrator`. Importing it has no effect.
 *
 * @module
 */
export { type OrchestratorConfiguration, orchestratorRoot } from './configuration/orchestrator-root.ts'
export { environmentName } from './configuration/orchestrator-rules.ts'
export { rendererOf } from './configuration/renderer-of.ts'
