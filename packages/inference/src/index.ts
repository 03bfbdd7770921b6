/**
 * Inference: the embedded engine and its HTTP server. Importing it has no effect.
 *
 * @module
 */
export * from './configuration/index.ts'
export { createEngine } from './engine/create-engine.ts'
export type * from './engine/engine.ts'
export type { EngineOptions } from './engine/engine-options.ts'
export { binaryMediaType } from './server/binary-answer.ts'
export { createInferenceServer, type InferenceServer, type InferenceServerOptions } from './server/create-server.ts'
export { type InferencePlanOptions, type InferenceSetup, prepareInference } from './server/prepare-inference.ts'
export { type InferenceRunOptions, runInference } from './server/run-inference.ts'
export type { TextTools } from './server/server-context.ts'
export { stateOf, sumUsage, type Usage, usageOf, usageValues } from './view/usage.ts'
export { UsageView } from './view/usage-view.ts'
