/**
 * Inference: at present the configuration of the root `inference`. Importing it has no effect.
 *
 * @module
 */
export * from './configuration/index.ts'
