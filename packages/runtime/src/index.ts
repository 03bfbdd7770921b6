/**
 * From files and flags to a run: composition, choice of plugins, container, lifecycle.
 *
 * @module
 */
export { type ComposeRequest, compose } from './compose/compose.ts'
export type { ComposedPlugin, Composition, IgnoredKey, UnavailableKey } from './compose/composition.ts'
export { findRoot, type RootDefinition, type RootName, rootNames } from './compose/root-definitions.ts'
export type { RunContainer } from './container.ts'
export { type CreatePluginsOptions, createPlugins } from './create-plugins.ts'
export { builtInCandidates } from './plugins/built-in.ts'
export type { PluginCandidate } from './plugins/candidate.ts'
export { discoverInstalled } from './plugins/discover.ts'
export { type KnownPlugin, knownPlugins } from './plugins/known-plugins.ts'
export { createLogger, type LoggerOptions, logLevelOf } from './process/create-logger.ts'
export {
  type LifecycleContext,
  type LifecycleOptions,
  type LifecycleResult,
  type ProcessEvents,
  runLifecycle,
} from './process/lifecycle.ts'
export { type EvaluationOptions, type EvaluationReport, startEvaluation } from './process/start-evaluation.ts'
export type { StartOptions } from './process/start-options.ts'
export { type RlStartOptions, startRl } from './process/start-rl.ts'
export { startRole } from './process/start-role.ts'
export { startSft } from './process/start-sft.ts'
export { startTrainer } from './process/start-trainer.ts'
export { missingModels } from './report/check-models.ts'
export { type CompositionReport, reportOf } from './report/composition-report.ts'
export { jsonSchemaOf } from './report/json-schema.ts'
export { missingRoles, rootsOf } from './report/missing-roles.ts'
export { referenceIndex, referencePage } from './report/reference-page.ts'
export { renderCauses, renderError, renderReport } from './report/render.ts'
export { outputFolder, resolvedToml, writeResolved } from './report/write-resolved.ts'
