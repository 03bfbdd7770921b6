/**
 * What every package shares: the seams and their contracts, the data that crosses them, `definePlugin`, the error class and the logger
 * interface. Importing it has no effect.
 *
 * @module
 */
export * from './configuration/renderer-table.ts'
export * from './configuration/shared-tables.ts'
export * from './configuration.ts'
export * from './data/opaque-payload.ts'
export * from './data/policy-version.ts'
export * from './data/rollout.ts'
export * from './errors.ts'
export * from './files.ts'
export * from './logger.ts'
export * from './plugin.ts'
export * from './seam.ts'
export * from './seams/index.ts'
export * from './seams/kv-store.ts'
export * from './seams/parallelism.ts'
export * from './seams/precision.ts'
export * from './seams/replay.ts'
export * from './seams/router.ts'
