/**
 * The orchestrator: runs episodes, makes batches of them, keeps them fresh, and brings new weights to the engines. Importing it has no effect.
 *
 * @module
 */
export {
  type Advantage,
  type AdvantageInputs,
  type AdvantageRollout,
  defaultAdvantage,
  rewardAdvantage,
} from './advantage/advantage.ts'
export { type CustomAdvantage, createAdvantage } from './advantage/create-advantage.ts'
export type { TrainEnvironment } from './batch/train-sink.ts'
export * from './configuration/index.ts'
export type { RequestFacts } from './dispatch/dispatcher.ts'
export type { EpisodeEnvironment, EpisodePool } from './dispatch/group-plan.ts'
export { environmentWorkerEntry } from './environment-worker/entry.ts'
export type { EvalEnvironment, EvalResult } from './evals/eval-runs.ts'
export { createFilters, type RolloutFilter } from './filters/rollout-filter.ts'
export type { EngineAdmin, EngineLoad } from './fleet/engine-admin.ts'
export { createHttpEngineAdmin } from './fleet/http-engine-admin.ts'
export { type EngineAddress, LiveFleet } from './fleet/live-fleet.ts'
export type { Progress } from './progress/progress.ts'
export { type Clock, systemClock } from './run/clock.ts'
export { Orchestrator } from './run/orchestrator.ts'
export type { OrchestratorParts, RunFiles, RunSettings } from './run/orchestrator-parts.ts'
export { type OrchestratorPlanOptions, type OrchestratorSetup, prepareOrchestrator } from './start/orchestrator-setup.ts'
export {
  type EvaluationStartOptions,
  type OrchestratorStartOptions,
  runOrchestrator,
  runOrchestratorEvaluation,
} from './start/run-orchestrator.ts'
export { VersionHolds, type VersionLease } from './updates/version-holds.ts'
