/**
 * The configuration of the trainer: roots `trainer` and `sft`. An entrance of its own, so that a configuration is composed without loading what it configures.
 *
 * @module
 */
export { meshRules } from './mesh-rules.ts'
export { type ModelPluginKeys, modelPluginKeys } from './plugin-keys.ts'
export { trainerReadKeys } from './read-keys.ts'
export { sftRoot } from './sft-root.ts'
export type { SftConfiguration } from './sft-schema.ts'
export { trainerRoot } from './trainer-root.ts'
export type { TrainerConfiguration } from './trainer-schema.ts'
