import type { Logger } from '@trilithon/core'
import type { EnvironmentTask, EpisodeGenerator, FinishedEpisode } from '../define/define-environment.ts'
import type { LoadedEnvironment } from '../load/load-environment.ts'
import type { Random } from '../reverse-text/random.ts'
import type { Conversation } from './conversation.ts'
import { EpisodeFailure, untilAborted } from './episode-failure.ts'

export interface ConverseOptions {
  readonly environment: LoadedEnvironment
  readonly task: EnvironmentTask
  readonly conversation: Conversation
  readonly signal: AbortSignal
  readonly random: Random
  readonly log: Logger
}

/**
 * One attempt of an episode. A limit on tokens is an end like any other; a turn that failed fails the episode even where the environment catches it, so that
 * an engine that is away can never become a reward. Throws what it failed by.
 */
export async function converse(options: ConverseOptions): Promise<FinishedEpisode<unknown>> {
  const { conversation, signal } = options
  let outcome: unknown
  try {
    outcome = await untilAborted(drive(options), signal)
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (conversation.failure !== null) throw conversation.failure
    if (conversation.end === null) throw error
  }
  if (conversation.failure !== null) throw conversation.failure
  if (conversation.turns.length === 0)
    throw new EpisodeFailure('EmptyTrajectory', conversation.end?.message ?? 'the episode asked the model nothing')
  const isCut = conversation.end !== null || conversation.answers.some(({ finishReason }) => finishReason === 'length')
  return { outcome, answers: conversation.answers, isTruncated: isCut }
}

async function drive({ environment, task, conversation: model, signal, random, log }: ConverseOptions): Promise<unknown> {
  const { definition, args, settings } = environment
  const running = definition.episode({ args, settings, task, model, signal, random, log })
  if (!isGenerator(running)) return running
  let step = await running.next(undefined as never)
  while (step.done !== true) {
    try {
      step = await running.next(await model.turn(step.value))
    } catch (error) {
      // Its `finally` blocks run.
      await running.return(undefined)
      throw error
    }
  }
  return step.value
}

function isGenerator(value: unknown): value is EpisodeGenerator<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}
