import type { Logger } from '@trilithon/core'
import type { z } from 'zod'
import type { Random } from '../reverse-text/random.ts'
import type { ChatMessage } from '../turn-renderer.ts'

/** Which tasks: those that are trained on, or those that are kept for evaluation. */
export type TaskSplit = 'train' | 'eval'

/** What a task is made from. The same place gives the same task on every machine. */
export interface TaskPlace {
  readonly split: TaskSplit
  /** From 0; below the size of the split where it has one. */
  readonly index: number
  readonly seed: number
}

/** Any plain object. A text under `id` names it in logs and metrics, else it is called by split and index. */
export type EnvironmentTask = object

/** Tasks by number, so that a position in the data is a number and no worker holds another's state. */
export interface EnvironmentDataset<Task extends EnvironmentTask> {
  /** Number of tasks per split; null is endless. */
  readonly size: { readonly train: number | null; readonly eval: number | null }
  task(place: TaskPlace): Task | Promise<Task>
}

/** What came back for one turn. */
export interface Answer {
  /** Text of the sampled tokens without the one that ended the turn. */
  readonly text: string
  /** `length`: a limit on tokens cut it. */
  readonly finishReason: 'stop' | 'length'
  readonly promptTokens: number
  readonly completionTokens: number
}

/** The policy inside an episode. */
export interface EpisodeModel {
  /**
   * Adds these messages to the conversation and samples an answer. Throws where the conversation has to end: a limit on tokens, the deadline, an engine
   * that does not answer. Let it pass: what was sampled so far is scored, or the episode counts as failed.
   */
  turn(messages: readonly ChatMessage[] | string): Promise<Answer>
}

export interface EpisodeContext<Args, Task> {
  readonly args: Args
  /** `extra_env_kwargs` of the configuration, as they are. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly task: Task
  readonly model: EpisodeModel
  /** Aborted at the deadline, or when nobody waits for the episode any more. */
  readonly signal: AbortSignal
  /** Differs between episodes of a task; the same episode draws the same numbers when it is tried again. */
  readonly random: Random
  readonly log: Logger
}

/** A finished conversation, for scoring. */
export interface FinishedEpisode<Outcome> {
  /** What `episode` returned; undefined where a limit on tokens ended the conversation first. */
  readonly outcome: Outcome | undefined
  /** Answers of the model in their order. */
  readonly answers: readonly Answer[]
  readonly isTruncated: boolean
}

export interface ScoreContext<Args, Task> {
  readonly args: Args
  readonly settings: Readonly<Record<string, unknown>>
  readonly task: Task
  readonly signal: AbortSignal
  readonly log: Logger
}

/** A reward, alone or with further numbers that are reported beside it. Anything that is not a finite number is an error and never a reward. */
export type Score = number | { readonly reward: number; readonly metrics?: Readonly<Record<string, number>> }

/** What is yielded by an episode that is written as a generator: messages; the answer comes back. */
export type EpisodeGenerator<Outcome> = AsyncGenerator<readonly ChatMessage[] | string, Outcome, Answer>

interface EnvironmentBase<ArgsSchema extends z.ZodType, Task extends EnvironmentTask, Outcome> {
  readonly name: string
  /** Arguments of the configuration (`args`); a strict object refuses what it does not know. */
  readonly args: ArgsSchema
  dataset(
    args: z.output<ArgsSchema>,
    settings: Readonly<Record<string, unknown>>,
  ): EnvironmentDataset<Task> | Promise<EnvironmentDataset<Task>>
  /** One conversation, as an async function that calls `model.turn`, or as an async generator that yields messages. */
  episode(context: EpisodeContext<z.output<ArgsSchema>, Task>): Promise<Outcome> | EpisodeGenerator<Outcome>
}

/** An environment whose episodes are scored one by one. */
export interface RolloutScoredEnvironment<ArgsSchema extends z.ZodType, Task extends EnvironmentTask, Outcome>
  extends EnvironmentBase<ArgsSchema, Task, Outcome> {
  readonly scoring?: 'rollout'
  score(episode: FinishedEpisode<Outcome>, context: ScoreContext<z.output<ArgsSchema>, Task>): Score | Promise<Score>
}

/** An environment that compares the episodes of a task: they run in one worker, and one that fails leaves none of its group scored. */
export interface GroupScoredEnvironment<ArgsSchema extends z.ZodType, Task extends EnvironmentTask, Outcome>
  extends EnvironmentBase<ArgsSchema, Task, Outcome> {
  readonly scoring: 'group'
  /** One score per episode, in their order. */
  score(
    episodes: readonly FinishedEpisode<Outcome>[],
    context: ScoreContext<z.output<ArgsSchema>, Task>,
  ): readonly Score[] | Promise<readonly Score[]>
}

export type EnvironmentDefinition<ArgsSchema extends z.ZodType, Task extends EnvironmentTask, Outcome> =
  | RolloutScoredEnvironment<ArgsSchema, Task, Outcome>
  | GroupScoredEnvironment<ArgsSchema, Task, Outcome>

/** Any environment, for code that loads one without knowing it. */
export type AnyEnvironment = EnvironmentDefinition<z.ZodType, EnvironmentTask, unknown>

/** Recognises a definition of another copy of this package. */
export const environmentBrand = Symbol.for('@trilithon/environment@1')

export type Environment<Definition> = Definition & { readonly [environmentBrand]: true }

/**
 * Describes an environment; the default export of its module. It does nothing but mark the definition: types of `args`, tasks and outcomes follow from
 * what is written.
 */
export function defineEnvironment<ArgsSchema extends z.ZodType, Task extends EnvironmentTask, Outcome>(
  definition: RolloutScoredEnvironment<ArgsSchema, Task, Outcome>,
): Environment<RolloutScoredEnvironment<ArgsSchema, Task, Outcome>>
export function defineEnvironment<ArgsSchema extends z.ZodType, Task extends EnvironmentTask, Outcome>(
  definition: GroupScoredEnvironment<ArgsSchema, Task, Outcome>,
): Environment<GroupScoredEnvironment<ArgsSchema, Task, Outcome>>
export function defineEnvironment(definition: object): object {
  return { ...definition, [environmentBrand]: true }
}
