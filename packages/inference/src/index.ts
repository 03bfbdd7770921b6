/**
 * Inference: at present the configuration of the root `inference`. Importing it has no effect.
 *
 * @module
 */
export { inferenceRoot } from './configuration/inference-root.ts'
export { loraRankOf, onlyHereTogether } from './configuration/inference-rules.ts'
export type { InferenceConfiguration } from './configuration/inference-schema.ts'
export { reasoningParserOf, toolCallParserOf } from './configuration/parser-of.ts'
export { type DeploymentKeys, type InferencePluginKeys, inferencePluginKeys } from './configuration/plugin-keys.ts'
