/**
 * The trainer: at present the configuration of the roots `trainer` and `sft`. Importing it has no effect.
 *
 * @module
 */
export { meshRules } from './configuration/mesh-rules.ts'
export { type ModelPluginKeys, modelPluginKeys } from './configuration/plugin-keys.ts'
export { sftRoot } from './configuration/sft-root.ts'
export type { SftConfiguration } from './configuration/sft-schema.ts'
export { trainerRoot } from './configuration/trainer-root.ts'
export type { TrainerConfiguration } from './configuration/trainer-schema.ts'
