import type { OpaquePayload } from './opaque-payload.ts'

/** Names of the processes that make a run. */
export const roles = ['trainer', 'orchestrator', 'inference', 'environment'] as const
export type Role = (typeof roles)[number]

/** Which loss a sample is for. */
export type TrainingMode = 'rl' | 'opd' | 'sft'

/**
 * One call of the engine inside an episode: the token ids that went in and came out, with what the engine knows of each.
 *
 * All per-token arrays of the completion have `completionIds.length` entries.
 */
export interface Turn {
  readonly promptIds: Uint32Array
  readonly completionIds: Uint32Array
  /** Log-probability under the sampling distribution (after temperature) of each completion token. */
  readonly logprobs: Float32Array
  /** Policy version that sampled each completion token. */
  readonly versions: Uint32Array
  /** Oldest policy version that computed any key each completion token attended to. */
  readonly contextVersionsMin: Uint32Array
  readonly temperature: number
  readonly finishReason: 'stop' | 'length' | 'abort'
  /** Rows of the prompt and the completion but the last sampled token, which was never an input. */
  readonly routedExperts?: OpaquePayload
}

/** A finished episode of one task, as an environment worker hands it over. */
export interface Rollout {
  readonly id: string
  readonly groupId: string
  readonly environment: string
  readonly taskId: string
  readonly turns: readonly Turn[]
  /** null when the episode failed: an error never becomes a reward. */
  readonly reward: number | null
  readonly metrics: Readonly<Record<string, number>>
  readonly error?: { readonly type: string; readonly message: string }
}

/**
 * What is trained: one token sequence with the mask of the tokens that the policy sampled. Built from the turns of a rollout by the
 * extension property; a sampled token is trained in one sample only. Per-token arrays cover the completion.
 */
export interface Sample {
  readonly id: string
  readonly environment: string
  readonly promptIds: Uint32Array
  readonly completionIds: Uint32Array
  /** 1 where the token was sampled by the policy and is to be trained. */
  readonly mask: Uint8Array
  readonly logprobs: Float32Array
  readonly temperatures: Float32Array
  readonly versions: Uint32Array
  readonly contextVersionsMin: Uint32Array
  readonly advantage: number | null
  readonly reward: number | null
  readonly trainingMode: TrainingMode
  /** Numerics profile under which the log-probabilities were computed. */
  readonly profile: string
  /** One log-probability per token of prompt and completion (opd). */
  readonly teacherLogprobs?: Float32Array
  readonly routedExperts?: OpaquePayload
}

/** Samples packed for one data rank. Per-token arrays have `inputIds.length` entries; `sequenceLengths` sums to it. */
export interface MicroBatch {
  readonly inputIds: Uint32Array
  readonly positionIds: Uint32Array
  readonly mask: Uint8Array
  readonly advantages: Float32Array
  readonly logprobs: Float32Array
  readonly temperatures: Float32Array
  readonly versions: Uint32Array
  readonly contextVersionsMin: Uint32Array
  readonly sequenceLengths: readonly number[]
  /** One per sequence; padding is its own sequence with an empty id. */
  readonly sampleIds: readonly string[]
  readonly environments: readonly string[]
  readonly rewards: readonly (number | null)[]
  readonly trainingMode: TrainingMode
  readonly profile: string
  readonly teacherLogprobs?: Float32Array
  readonly routedExperts?: OpaquePayload
}
