import type { PolicyVersion, Sample } from '@trilithon/core'
import type { EpisodeTiming } from '@trilithon/environments'
import type { FilterResult } from '../filters/rollout-filter.ts'
import type { DraftSample } from '../samples/build-samples.ts'
import type { SourceTask } from '../source/task-source.ts'

/** What the rollouts of one group share. */
export interface TrainGroup {
  readonly id: string
  readonly environment: string
  readonly task: SourceTask
  /** Version that it began under. */
  readonly version: PolicyVersion
  /** Episodes that it had, with those that failed. */
  readonly size: number
  /** A batch with some of it was shipped. */
  isShipped: boolean
}

/** A finished episode that may be trained: its samples, and what is told of it. The turns themselves are gone. */
export interface TrainRollout {
  readonly id: string
  readonly group: TrainGroup
  readonly taskId: string
  readonly reward: number
  readonly advantage: number
  readonly samples: readonly DraftSample[]
  /** Oldest version that sampled a token of it. */
  readonly oldest: PolicyVersion
  readonly facts: RolloutFacts
  /** What the filters of a full batch found in its tokens, one per filter. */
  readonly detected: readonly boolean[]
  readonly preFilters: FilterResult
}

/** Numbers of an episode. */
export interface RolloutFacts {
  readonly turns: number
  /** Over all turns: tokens of prompts, and tokens that were sampled. */
  readonly inputTokens: number
  readonly completionTokens: number
  /** Tokens of its sequences, each counted once: all, and those that nothing sampled. */
  readonly sequenceTokens: number
  readonly prefillTokens: number
  /** Turns that could not continue the ids before them, and began another sequence. */
  readonly extensionBreaks: number
  readonly isTruncated: boolean
  readonly stopCondition: string
  readonly metrics: Readonly<Record<string, number>>
  readonly timing: EpisodeTiming
  readonly state: Readonly<Record<string, unknown>>
}

/** The samples of a rollout as they are shipped. */
export function samplesOf({ id, group, advantage, reward, samples }: TrainRollout, profile: string): Sample[] {
  return samples.map(({ oldest: _, ...sample }, index) => ({
    id: `${id}.${index}`,
    environment: group.environment,
    ...sample,
    ...{ advantage, reward, trainingMode: 'rl' as const, profile },
  }))
}
