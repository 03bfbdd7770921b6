/**
 * Inference: at present the configuration of the root `inference`. Importing it has no effect.
 *
 * @module
 */
export * from './configuration/index.ts'
export { createEngine } from './engine/create-engine.ts'
export type * from './engine/engine.ts'
export type { EngineOptions } from './engine/engine-options.ts'
