import type { Logger, PolicyVersion, Router, Sample } from '@trilithon/core'
import type { RoleEvent } from '@trilithon/monitor'
import type { TrainEnvironment } from '../batch/train-sink.ts'
import type { AdaptiveSettings } from '../concurrency/adaptive-concurrency.ts'
import type { RequestFacts } from '../dispatch/dispatcher.ts'
import type { EvalEnvironment } from '../evals/eval-runs.ts'
import type { RolloutFilter } from '../filters/rollout-filter.ts'
import type { EngineAdmin } from '../fleet/engine-admin.ts'
import type { LiveFleet } from '../fleet/live-fleet.ts'
import type { Progress } from '../progress/progress.ts'
import type { VersionHolds } from '../updates/version-holds.ts'
import type { Clock } from './clock.ts'

/** Numbers of a run, from the configuration. */
export interface RunSettings {
  readonly maxSteps: number | null
  /** One of the two is set. */
  readonly batchSize: number | null
  readonly tokenBatchSize: number | null
  readonly maxInflight: number
  /** How many of them may be in flight is found out while the run goes on; null or left out: all of them. */
  readonly adaptiveConcurrency?: AdaptiveSettings | null
  readonly tasksPerMinute: number | null
  readonly seqLen: number
  readonly maxAsyncLevel: number
  readonly maxOffPolicySteps: number
  /** Steps between two checkpoints; null writes one at the end. */
  readonly checkpointInterval: number | null
  readonly skipsFirstEval: boolean
  /** Seconds between two lines of what goes on. */
  readonly logInterval: number
  readonly profile: string
  /** Seconds that the run waits for an engine when none is left; 0 ends it with the last. */
  readonly recoveryS: number
  /** Seconds without a sign of life of episodes that end the run; null never does. */
  readonly stallTimeoutS: number | null
  /** The model that an engine which comes back must serve; null does not ask. */
  readonly checkedModel: string | null
  /** Read the load of the engines, for metrics and for the router. */
  readonly pollsEngines: boolean
}

/** Where the run leaves what it made. */
export interface RunFiles {
  /** Lines of `<rollouts>/step_N/<name>`. */
  saveRecords(step: number, name: string, records: readonly object[]): Promise<void>
  /** null where the run has no checkpoints. */
  readonly saveCheckpoint: ((progress: Progress) => void) | null
}

/** Everything that an orchestrator works with; a test hands over fakes. */
export interface OrchestratorParts {
  readonly settings: RunSettings
  readonly train: readonly (TrainEnvironment & { readonly ratio: number | null })[]
  readonly evals: readonly EvalEnvironment[]
  readonly preFilters: readonly RolloutFilter[]
  readonly postFilters: readonly RolloutFilter[]
  readonly router: Router
  readonly fleet: LiveFleet
  readonly admin: EngineAdmin
  readonly facts: RequestFacts
  readonly sender: {
    /** Resolves when the batch is safe, and not too many wait for the trainer. The signal ends that waiting. */
    send(step: number, samples: readonly Sample[], progress: object, signal?: AbortSignal): Promise<void>
  }
  /** Calls `onVersion` with new versions, waiting for it, until the signal aborts. */
  readonly watchVersions: (
    onVersion: (version: PolicyVersion) => Promise<void>,
    options: { readonly signal: AbortSignal; readonly above: PolicyVersion },
  ) => Promise<void>
  readonly folderOf: (version: PolicyVersion) => string
  readonly holds: VersionHolds
  readonly files: RunFiles
  readonly clock: Clock
  readonly log: Logger
  readonly report: (event: RoleEvent) => void
  /** Where a run goes on; null begins one. */
  readonly progress: Progress | null
  /** The version that serves at the beginning. */
  readonly version: PolicyVersion
  readonly isResume: boolean
}
