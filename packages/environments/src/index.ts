/**
 * Environments: at present the configuration of one and of the stand-alone server. Importing it has no effect.
 *
 * @module
 */
export * from './configuration/env-server-root.ts'
export * from './configuration/environment-table.ts'
