import type { Logger, Turn } from '@trilithon/core'
import type { GenerateClient } from '../client/generate-client.ts'
import type { EnvironmentTask, FinishedEpisode, ScoreContext } from '../define/define-environment.ts'
import type { LoadedEnvironment } from '../load/load-environment.ts'
import type { EpisodeResult } from '../pool/environment-pool.ts'
import { createRandom, hashText } from '../reverse-text/random.ts'
import type { TurnRenderer } from '../turn-renderer.ts'
import { checkScore } from './check-score.ts'
import { Conversation, type ConversationPlan } from './conversation.ts'
import { converse } from './converse.ts'
import { describeFailure, EpisodeFailure, isRetryable, sleep, untilAborted } from './episode-failure.ts'

export interface EpisodePlan extends ConversationPlan {
  readonly rolloutId: string
  readonly split: 'train' | 'eval'
  readonly index: number
  readonly seed: number
}

export interface RunEpisodesOptions {
  readonly environment: LoadedEnvironment
  /** One, or all of a group: they have one task. */
  readonly plans: readonly EpisodePlan[]
  readonly renderer: TurnRenderer
  readonly client: Pick<GenerateClient, 'generate'>
  /** Aborted where nobody waits for the answer any more. */
  readonly signal: AbortSignal
  /** Milliseconds from now; null: none. */
  readonly deadlineMs: number | null
  /** Attempts count from here; the last one is `maxRetries`. */
  readonly firstAttempt: number
  readonly maxRetries: number
  readonly stateColumns: readonly string[]
  readonly logsData: boolean
  readonly log: Logger
  readonly onTurn: (episode: number, attempt: number, turn: Turn) => void
}

/** A result without its turns, which went ahead of it, and the attempt that they belong to. */
export interface EpisodeOutput extends Omit<EpisodeResult, 'turns'> {
  readonly attempt: number
}

interface Conversed {
  readonly attempt: number
  readonly conversation: Conversation
  readonly finished: FinishedEpisode<unknown> | null
  readonly error: unknown
  readonly generation: number
}

const firstWaitMs = 50
const longestWaitMs = 2000

/** Runs the episodes side by side and scores them. Never rejects for what an environment or an engine does. */
export async function runEpisodes(options: RunEpisodesOptions): Promise<EpisodeOutput[]> {
  const { environment, plans, deadlineMs, log } = options
  const began = performance.now()
  const controller = new AbortController()
  const cancel = () => controller.abort(options.signal.reason)
  options.signal.addEventListener('abort', cancel, { once: true })
  if (options.signal.aborted) cancel()
  const late = () =>
    controller.abort(new EpisodeFailure('DeadlineExceeded', `the episode took longer than ${Math.round(deadlineMs ?? 0) / 1000} s`))
  const timer = deadlineMs === null ? undefined : setTimeout(late, Math.min(deadlineMs, 2 ** 31 - 1))
  const deadline = deadlineMs === null ? null : began + deadlineMs
  const signal = controller.signal
  try {
    const conversed = await Promise.all(plans.map((_, episode) => converseWithRetries(options, episode, signal, deadline)))
    const scoring = performance.now()
    const scored = await scoreAll(options, conversed, signal)
    const ended = performance.now()
    return conversed.map((one, episode) => {
      const { attempt, conversation, generation } = one
      const plan = plans[episode]
      const { reward = null, metrics = {}, error } = scored[episode] ?? {}
      const failure = error === undefined ? undefined : describeFailure(error)
      if (failure !== undefined && failure.type !== 'Cancelled')
        log.warn('episode failed', { rollout: plan?.rolloutId, type: failure.type, reason: failure.message, stack: stackOf(error) })
      return {
        attempt,
        reward,
        metrics,
        ...(failure === undefined ? {} : { error: failure }),
        timing: {
          total: (ended - began) / 1000,
          generation,
          model: conversation.modelSeconds,
          scoring: (ended - scoring) / 1000,
        },
        stopCondition: conversation.end?.reason ?? (failure === undefined ? 'completed' : 'error'),
        isTruncated: isTruncated(conversation),
        taskId: environment.taskId(plan),
        extensionBreaks: conversation.extensionBreaks,
        state: stateOf(one.finished?.outcome, options.stateColumns),
      }
    })
  } finally {
    clearTimeout(timer)
    options.signal.removeEventListener('abort', cancel)
    // Whatever an environment still does for these episodes is told to stop.
    controller.abort(new EpisodeFailure('Cancelled', 'the episode has ended'))
  }
}

async function converseWithRetries(
  options: RunEpisodesOptions,
  episode: number,
  signal: AbortSignal,
  deadline: number | null,
): Promise<Conversed> {
  const { plans, renderer, client, environment, firstAttempt, maxRetries, log, logsData } = options
  const plan = plans[episode]
  if (plan === undefined) throw new Error('an episode without a plan')
  for (let attempt = firstAttempt; ; attempt++) {
    const began = performance.now()
    const onTurn = (turn: Turn) => {
      // After the end nobody listens, and a turn that comes late belongs to nothing.
      if (!signal.aborted) options.onTurn(episode, attempt, turn)
    }
    const conversation = new Conversation({ plan, renderer, client, signal, deadline, onTurn })
    const random = createRandom(hashText(`${plan.seed}/${plan.split}/${plan.index}/${plan.samplingSeed ?? plan.rolloutId}`))
    let error: unknown
    try {
      const task = await untilAborted(environment.task(plan), signal)
      const finished = await converse({ environment, task, conversation, signal, random, log })
      if (logsData) log.info('episode', { rollout: plan.rolloutId, task, answers: conversation.answers.map(({ text }) => text) })
      return { attempt, conversation, finished, error: undefined, generation: (performance.now() - began) / 1000 }
    } catch (cause) {
      error = cause
      // An engine that was away when time ran out is what the episode failed by.
      if (error instanceof EpisodeFailure && error.type === 'DeadlineExceeded' && conversation.outage !== null)
        error = new EpisodeFailure('EngineUnavailable', `until the deadline: ${conversation.outage}`)
    }
    if (signal.aborted || !isRetryable(error) || attempt >= maxRetries)
      return { attempt, conversation, finished: null, error, generation: (performance.now() - began) / 1000 }
    log.info('episode is tried again', { rollout: plan.rolloutId, attempt: attempt + 1, reason: describeFailure(error).message })
    await sleep(waitOf(attempt - firstAttempt), signal).catch(() => undefined)
    if (isLate(signal)) return { attempt, conversation, finished: null, error, generation: (performance.now() - began) / 1000 }
  }
}

/** Whether time ran out: then an episode has failed by what its last attempt failed by, and not by the clock. */
function isLate({ reason }: AbortSignal): boolean {
  return reason instanceof EpisodeFailure && reason.type === 'DeadlineExceeded'
}

interface Scored {
  readonly reward?: number | null
  readonly metrics?: Record<string, number>
  readonly error?: unknown
}

async function scoreAll(options: RunEpisodesOptions, conversed: readonly Conversed[], signal: AbortSignal): Promise<Scored[]> {
  const { environment, plans } = options
  const { definition } = environment
  if (definition.scoring !== 'group') return Promise.all(conversed.map((one, episode) => scoreOne(options, one, episode, signal)))
  const failed = conversed.filter(({ finished }) => finished === null)
  if (failed.length > 0) {
    const [first] = failed
    const reason = `${failed.length} of ${conversed.length} episodes of the group failed, the first with: ${describeFailure(first?.error).message}`
    return conversed.map(({ finished, error }) => ({ error: finished === null ? error : new EpisodeFailure('GroupIncomplete', reason) }))
  }
  const episodes = conversed.flatMap(({ finished }) => (finished === null ? [] : [finished]))
  try {
    const context = await scoreContext(options, plans[0], signal)
    const scores = await withRetries(options, signal, async () => definition.score(episodes, context))
    if (!Array.isArray(scores) || scores.length !== episodes.length)
      throw new EpisodeFailure(
        'RewardInvalid',
        `score gave ${Array.isArray(scores) ? scores.length : 'no list of'} scores for ${episodes.length} episodes`,
      )
    return scores.map((score) => checked(score))
  } catch (error) {
    return conversed.map(() => ({ error }))
  }
}

async function scoreOne(
  options: RunEpisodesOptions,
  { finished, error }: Conversed,
  episode: number,
  signal: AbortSignal,
): Promise<Scored> {
  const { definition } = options.environment
  if (finished === null) return { error }
  if (definition.scoring === 'group') throw new Error('a group is scored as one')
  try {
    const context = await scoreContext(options, options.plans[episode], signal)
    return checked(await withRetries(options, signal, async () => definition.score(finished, context)))
  } catch (reason) {
    return { error: reason }
  }
}

function checked(score: unknown): Scored {
  try {
    return checkScore(score)
  } catch (error) {
    return { error }
  }
}

async function scoreContext(
  { environment, log }: RunEpisodesOptions,
  plan: EpisodePlan | undefined,
  signal: AbortSignal,
): Promise<ScoreContext<unknown, EnvironmentTask>> {
  if (plan === undefined) throw new Error('a score without a plan')
  const { args, settings } = environment
  return { args, settings, task: await environment.task(plan), signal, log }
}

/** Scoring is tried again by itself: what was sampled stays. */
async function withRetries<Value>(
  { maxRetries, firstAttempt, log }: RunEpisodesOptions,
  signal: AbortSignal,
  work: () => Promise<Value>,
): Promise<Value> {
  for (let attempt = firstAttempt; ; attempt++) {
    try {
      return await untilAborted(work(), signal)
    } catch (error) {
      if (signal.aborted || attempt >= maxRetries || !isRetryable(error)) throw error
      log.info('scoring is tried again', { attempt: attempt + 1, reason: describeFailure(error).message })
      await sleep(waitOf(attempt - firstAttempt), signal).catch((reason: unknown) => {
        throw isLate(signal) ? error : reason
      })
    }
  }
}

function waitOf(attempt: number): number {
  return Math.min(longestWaitMs, firstWaitMs * 2 ** attempt)
}

function isTruncated({ end, answers }: Conversation): boolean {
  return end !== null || answers.some(({ finishReason }) => finishReason === 'length')
}

function stackOf(error: unknown): string | undefined {
  return error instanceof Error && !(error instanceof EpisodeFailure) ? error.stack : undefined
}

function stateOf(outcome: unknown, columns: readonly string[]): Record<string, unknown> {
  if (columns.length === 0 || typeof outcome !== 'object' || outcome === null) return {}
  const fields = outcome as Record<string, unknown>
  // By way of JSON, so that whatever an environment keeps there can travel.
  return Object.fromEntries(
    columns.filter((name) => fields[name] !== undefined).map((name) => [name, JSON.parse(JSON.stringify(fields[name]) ?? 'null')]),
  )
}
