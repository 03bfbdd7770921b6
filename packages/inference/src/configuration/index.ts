/**
 * The configuration of inference: the root `inference`. An entrance of its own, so that a configuration is composed without loading what it configures.
 *
 * @module
 */
export { inferenceRoot } from './inference-root.ts'
export { loraRankOf, onlyHereTogether } from './inference-rules.ts'
export type { InferenceConfiguration } from './inference-schema.ts'
export { reasoningParserOf, toolCallParserOf } from './parser-of.ts'
export { type DeploymentKeys, type InferencePluginKeys, inferencePluginKeys } from './plugin-keys.ts'
export { inferenceReadKeys } from './read-keys.ts'
