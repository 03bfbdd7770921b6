/**
 * The trainer: at present the configuration of the roots `trainer` and `sft`. Importing it has no effect.
 *
 * @module
 */
export { type ModelPluginKeys, modelPluginKeys } from './configuration/plugin-keys.ts'
export { type SftConfiguration, sftRoot } from './configuration/sft-root.ts'
export { type TrainerConfiguration, trainerRoot } from './configuration/trainer-root.ts'
