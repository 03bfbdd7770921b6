/**
 * The orchestrator: at present the configuration of the root `orchestrator`. Importing it has no effect.
 *
 * @module
 */
export * from './configuration/index.ts'
export { environmentWorkerEntry } from './environment-worker/entry.ts'
