import type { PolicyVersion, WorkerId } from '@trilithon/core'
import type { EnvironmentPool, EpisodeResult, EpisodeSampling } from '@trilithon/environments'

/** What the dispatcher needs of a pool. */
export type EpisodePool = Pick<EnvironmentPool, 'name' | 'tasks' | 'evalTasks' | 'scoring' | 'run' | 'runGroup'>

/** An environment with all that is the same for its episodes. */
export interface EpisodeEnvironment {
  readonly name: string
  readonly pool: EpisodePool
  readonly split: 'train' | 'eval'
  readonly sampling: EpisodeSampling
  /** Tokens of prompt and completions together. */
  readonly maxSeqLen: number
  /** Milliseconds after which an episode has lost its engine, all of its retries counted; null: never. */
  readonly leaseMs: number | null
  /** Where its workers write what went wrong; left out where nobody knows. */
  readonly logs?: string
}

/** An episode that ended by itself, with or without an error. */
export interface FinishedEpisode {
  readonly rolloutId: string
  readonly result: EpisodeResult
  /** Version that served when it was started. */
  readonly version: PolicyVersion
  readonly worker: WorkerId
}

/** Episodes of one task that are compared with each other. The dispatcher runs it; whoever made it hears of the end of each episode, once. */
export interface GroupPlan {
  readonly id: string
  readonly kind: 'train' | 'eval'
  readonly environment: EpisodeEnvironment
  readonly taskIndex: number
  readonly size: number
  /** `version` is the one the group began under; the last call for a group has `isLast`. */
  finished(episode: FinishedEpisode, group: { readonly version: PolicyVersion; readonly isLast: boolean }): void
  /** Instead of the remaining calls: the group was given up as a whole. */
  cancelled(counts: CancelCounts): void
}

export interface CancelCounts {
  /** Episodes that were running. */
  readonly running: number
  /** Episodes that had finished, and are dropped with the others. */
  readonly finished: number
  readonly reason: 'stale' | 'end'
}
