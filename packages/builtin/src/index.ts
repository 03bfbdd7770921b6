/**
 * The plain fillings of the five heart seams: what runs when no plugin is installed, and the oracle that plugins are compared with. Importing it
 * has no effect.
 *
 * @module
 */
export { builtinPlugins } from './builtin-plugins.ts'
export { emptyPlan } from './empty-plan.ts'
export { fp32Recipe } from './fp32-recipe.ts'
export { memoryKVStore } from './memory-kv-store.ts'
export { oneDevice } from './one-device.ts'
export { refusingReplay } from './refusing-replay.ts'
export { stickyRouter } from './sticky-router.ts'
