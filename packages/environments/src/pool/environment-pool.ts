import type { Logger, Turn } from '@trilithon/core'
import type { TaskSplit } from '../define/define-environment.ts'
import type { RendererDescription } from '../turn-renderer.ts'

/** Sampling of every turn; null leaves a value to the engine. */
export interface EpisodeSampling {
  readonly temperature: number | null
  readonly top_p?: number | null
  readonly top_k?: number | null
  readonly min_p?: number | null
  /** Tokens per turn; null: what is left of `maxSeqLen`. */
  readonly max_completion_tokens?: number | null
  /** Further sampling parameters. `cache_salt` and `priority` go to the top of the request. */
  readonly extra_body?: Readonly<Record<string, unknown>>
}

/** One episode of a task, with everything that its calls of the engine need. */
export interface EpisodeRequest {
  readonly rolloutId: string
  readonly groupId: string
  readonly taskIndex: number
  readonly split: TaskSplit
  /** Seed of the dataset: with split and index it makes the task. */
  readonly seed: number
  /**
   * Whole, from 0 to 2^31 - 1: what is sampled, and what the environment draws, follows from it and from the weights alone, in every attempt. Of a group each
   * episode has its own. null or left out: the engine chooses.
   */
  readonly samplingSeed?: number | null
  /** URL of the engine, with or without `/v1` at its end. */
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  /** Version of the policy that the group began under; it is part of every KV key. */
  readonly salt: string
  /** Sent as `X-Session-ID`: turns of an episode go where their KV is. */
  readonly session: string
  /** `deadlineMs` is a duration: milliseconds from the call of `run`, after which the lease has ended by itself. null or Infinity: it does not. */
  readonly lease: { readonly id: string; readonly deadlineMs: number | null }
  /** Name of the model at the engine. */
  readonly model: string
  readonly sampling: EpisodeSampling
  /** Tokens of prompt and completions together. */
  readonly maxSeqLen: number
  /** Variable of the environment that holds the key of the engine; one that is not set sends none. */
  readonly apiKeyVar: string | null
  readonly wantsRoutedExperts: boolean
}

/**
 * Classes of failure that this package itself makes; what an environment throws has the name of its own error class.
 *
 * - `Cancelled`: by the signal.
 * - `DeadlineExceeded`: the episode took longer than the timeout or its lease.
 * - `WorkerDied`: it ended its process more often than `max_retries` allows, or held it until that was killed for its silence.
 * - `EngineUnavailable`: no connection, or an answer of 5xx, until the deadline or ten times in a row.
 * - `EngineRejected`: an answer of 4xx.
 * - `EngineAnswerInvalid`: an answer that is none.
 * - `EngineAborted`: the engine ended the request by itself.
 * - `EmptyTrajectory`: the first prompt already leaves no room for an answer, or the episode asked for none.
 * - `RewardInvalid`: a reward or a metric that is not a finite number.
 * - `GroupIncomplete`: another episode of the group failed, and the environment scores groups.
 * - `TaskInvalid`: the task cannot be made.
 */
export type EpisodeErrorType =
  | 'Cancelled'
  | 'DeadlineExceeded'
  | 'WorkerDied'
  | 'EngineUnavailable'
  | 'EngineRejected'
  | 'EngineAnswerInvalid'
  | 'EngineAborted'
  | 'EmptyTrajectory'
  | 'RewardInvalid'
  | 'GroupIncomplete'
  | 'TaskInvalid'

/** Seconds. `generation` is the conversation, `model` the part of it that waited for the engine. */
export interface EpisodeTiming {
  readonly total: number
  readonly generation: number
  readonly model: number
  readonly scoring: number
}

export interface EpisodeResult {
  /** Of the attempt that counts; those before it leave none. */
  readonly turns: Turn[]
  /** null exactly where `error` is set. */
  readonly reward: number | null
  readonly metrics: Record<string, number>
  readonly error?: { readonly type: EpisodeErrorType | (string & {}); readonly message: string }
  readonly timing: EpisodeTiming
  /** `completed`, `prompt_too_long`, `max_total_completion_tokens` or `error`. */
  readonly stopCondition: string
  readonly isTruncated: boolean
  readonly taskId: string
  /** Turns whose prompt could not extend the one before and began a new sequence. */
  readonly extensionBreaks: number
  /** Fields of the outcome that `state_columns` names. */
  readonly state: Readonly<Record<string, unknown>>
}

export interface RunOptions {
  readonly signal: AbortSignal
  /** Called for each turn when it is done. After a retry turns begin again: `attempt` counts from 0. */
  readonly onTurn?: (turn: Turn, attempt: number) => void
}

export interface EnvironmentPool {
  readonly name: string
  /** Size of the dataset that is trained on; null: endless. */
  readonly tasks: number | null
  /** Size of the dataset for evaluations; null: endless. */
  readonly evalTasks: number | null
  readonly scoring: 'rollout' | 'group'
  /** Never rejects for what happens to the episode: the error is in the result. A pool that was disposed of answers `Cancelled`. */
  run(episode: EpisodeRequest, options: RunOptions): Promise<EpisodeResult>
  /** All episodes of one group in one worker; for `scoring: 'group'`. */
  runGroup(episodes: readonly EpisodeRequest[], options: RunOptions): Promise<EpisodeResult[]>
  readonly stats: PoolStats
  /** Ends every worker and every episode in flight. */
  dispose(): Promise<void>
}

/** Counters from the start of the pool. */
export interface PoolStats {
  readonly workers: number
  readonly inFlight: number
  readonly finished: number
  /** Workers that ended by themselves or were killed. */
  readonly workerDeaths: number
  /** Episodes that were run again because their worker died. */
  readonly rerun: number
}

/** What became of a worker process, so that the leases of its episodes can be ended. */
export interface WorkerDeath {
  readonly worker: number
  readonly pid: number | undefined
  /** One sentence. */
  readonly reason: string
  /** Episodes that ran there; all but whoever held or ended it are run again. */
  readonly rolloutIds: readonly string[]
}

export interface EnvironmentPoolOptions {
  /** Built-in name, package (`name@version` picks one that is installed), or path of a module. */
  readonly id: string
  /** In logs and results; null takes the id without its version, of a path the name of the file. */
  readonly name?: string | null
  readonly args?: Readonly<Record<string, unknown>>
  /** `extra_env_kwargs` of the configuration. */
  readonly settings?: Readonly<Record<string, unknown>>
  /** Processes; not read where `address` is set. */
  readonly workers: number
  /** Address of an environment server that already runs (`tcp://host:port`); null starts workers here. */
  readonly address?: string | null
  /** The JavaScript file that a worker process runs: `environmentWorkerEntry` of the orchestrator. */
  readonly workerEntry: { readonly file: string; readonly arguments?: readonly string[] }
  readonly renderer: RendererDescription
  /** Seconds that an episode may take; null is no limit but the lease's. */
  readonly timeoutS?: number | null
  /** How often a failed episode, or one whose worker died, is tried again. */
  readonly maxRetries?: number
  /** Sampled tokens of an episode over all turns; -1 is no limit. */
  readonly maxTotalCompletionTokens?: number
  readonly stateColumns?: readonly string[]
  readonly client?: { readonly timeoutS?: number; readonly connectTimeoutS?: number }
  /** Relative ids are looked for from here. */
  readonly workingDirectory?: string
  /** Folder of `env_worker_<i>.log`; null throws what workers write away. */
  readonly logFolder?: string | null
  readonly logLevel?: 'debug' | 'info' | 'warn' | 'error'
  /** Also log what is asked and answered; large. */
  readonly logsData?: boolean
  readonly log: Logger
  readonly onWorkerDeath?: (death: WorkerDeath) => void
  /** Seconds that a worker may take to load the environment. */
  readonly startTimeoutS?: number
  /** Seconds without an answer to a ping after which a worker is taken for dead. */
  readonly unresponsiveS?: number
}
