/**
 * The configuration of the orchestrator: the root `orchestrator`. An entrance of its own, so that a configuration is composed without loading what it configures.
 *
 * @module
 */
export { environmentProblems } from './environment-problems.ts'
export { orchestratorRoot } from './orchestrator-root.ts'
export type { OrchestratorConfiguration } from './orchestrator-schema.ts'
export { orchestratorReadKeys } from './read-keys.ts'
export { rendererOf } from './renderer-of.ts'
