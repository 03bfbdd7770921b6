import { type Logger, TrilithonError } from '@trilithon/core'
import type { EpisodeResult } from '@trilithon/environments'
import type { Advantage } from '../advantage/advantage.ts'
import type { FinishedEpisode, GroupPlan } from '../dispatch/group-plan.ts'
import { applyFilters, detect, type RolloutFilter } from '../filters/rollout-filter.ts'
import { buildSamples, type DraftSample, findTurnFault } from '../samples/build-samples.ts'
import type { SourceTask } from '../source/task-source.ts'
import type { RolloutFacts, TrainGroup, TrainRollout } from './train-rollout.ts'

export interface TrainSinkOptions {
  readonly preFilters: readonly RolloutFilter[]
  readonly postFilters: readonly RolloutFilter[]
  readonly seqLen: number
  readonly log: Logger
  /** So many episodes of an environment in a row that fail by themselves end the run. */
  readonly errorLimit: number
  /** A rollout is ready, or a group has ended otherwise. */
  readonly onChange: () => void
  /** Takes a task back whose group was given up or too old. */
  readonly giveBack: (task: SourceTask) => boolean
}

export interface TrainEnvironment {
  readonly environment: GroupPlan['environment']
  readonly groupSize: number
  readonly advantage: Advantage
}

/** A rollout whose group is not whole yet. */
type Arrived = Omit<TrainRollout, 'group' | 'advantage' | 'preFilters'> & { readonly preDetected: readonly boolean[] }

/** Counts since they were last taken. */
export interface SinkCounts {
  arrived: number
  errored: number
  /** By class of error. */
  readonly errors: Record<string, number>
  readonly erroredByEnvironment: Record<string, number>
  /** Episodes cancelled while they ran. */
  cancelled: number
  readonly cancelledByEnvironment: Record<string, number>
  /** Finished rollouts dropped with their group, because it was cancelled or because they were too old when a batch was shipped. */
  droppedCancelled: number
  droppedStale: number
  /** Tasks that were given up for good. */
  abandoned: number
  preFiltered: number
  readonly preHits: Record<string, number>
}

/** An engine may fail so many times more episodes than an environment, each of which was tried again for a while. */
const outageLimit = 10

/** Finished episodes on their way into batches: they become samples, groups become whole and get advantages, what is left waits in order. */
export class TrainSink {
  readonly #options: TrainSinkOptions
  readonly #open = new Map<string, { readonly group: TrainGroup; readonly rollouts: Arrived[] }>()
  #pending: TrainRollout[] = []
  /** Episodes in a row that failed, by environment; those of engines apart, because outages pass. */
  readonly #failing = new Map<string, { environment: number; engine: number }>()
  #counts = noCounts()

  constructor(options: TrainSinkOptions) {
    this.#options = options
  }

  /** Rollouts that wait for a batch, the first to go first. */
  get pending(): readonly TrainRollout[] {
    return this.#pending
  }

  /** Tasks whose groups are not trained yet: begun ones, and waiting ones of which nothing was shipped. */
  get openTasks(): readonly SourceTask[] {
    const waiting = new Set(this.#pending.map(({ group }) => group).filter(({ isShipped }) => !isShipped))
    return [...this.#open.values(), ...[...waiting].map((group) => ({ group }))].map(({ group }) => group.task)
  }

  takeCounts(): SinkCounts {
    const counts = this.#counts
    this.#counts = noCounts()
    return counts
  }

  /** A new group for the dispatcher. */
  plan(id: string, task: SourceTask, { environment, groupSize, advantage }: TrainEnvironment): GroupPlan {
    const group: TrainGroup = { ...{ id, environment: environment.name, task, size: groupSize, isShipped: false }, version: 0 }
    const open = { group, rollouts: [] as Arrived[] }
    this.#open.set(id, open)
    return {
      ...{ id, kind: 'train', environment, taskIndex: task.index, size: groupSize },
      finished: (episode, { version, isLast }) => {
        const rollout = this.#arrive(episode, environment)
        if (rollout !== undefined) open.rollouts.push(rollout)
        if (!isLast) return
        this.#open.delete(id)
        const needsAll = environment.pool.scoring === 'group'
        if (!needsAll || open.rollouts.length === groupSize) this.#complete({ ...group, version }, open.rollouts, advantage)
        this.#options.onChange()
      },
      cancelled: ({ running, reason }) => {
        this.#open.delete(id)
        this.#counts.cancelled += running
        count(this.#counts.cancelledByEnvironment, environment.name, running)
        this.#counts.droppedCancelled += open.rollouts.length
        if (reason === 'stale') this.#return(task)
        this.#options.onChange()
      },
    }
  }

  /** Takes the first `count` waiting rollouts. */
  take(count: number): TrainRollout[] {
    return this.#pending.splice(0, count)
  }

  /** Drops waiting groups, as wholes, of which a rollout is too old. */
  dropStale(isStale: (oldest: number) => boolean): void {
    const stale = new Set(this.#pending.filter(({ oldest }) => isStale(oldest)).map(({ group }) => group))
    if (stale.size === 0) return
    const before = this.#pending.length
    this.#pending = this.#pending.filter(({ group }) => !stale.has(group))
    this.#counts.droppedStale += before - this.#pending.length
    for (const group of stale) if (!group.isShipped) this.#return(group.task)
  }

  #return(task: SourceTask): void {
    if (this.#options.giveBack(task)) return
    this.#counts.abandoned++
    this.#options.log.warn('a task is too slow for max_off_policy_steps and is left out', {
      environment: task.environment,
      task: task.index,
    })
  }

  #arrive({ rolloutId, result }: FinishedEpisode, environment: GroupPlan['environment']): Arrived | undefined {
    const counts = this.#counts
    counts.arrived++
    const error = errorOf(result)
    if (error !== undefined) {
      counts.errored++
      count(counts.errors, error.type)
      count(counts.erroredByEnvironment, environment.name)
      this.#options.log.debug('episode failed', { rollout: rolloutId, ...error })
      this.#refuseFailing(environment, error)
      return undefined
    }
    this.#failing.delete(environment.name)
    // A turn that sampled nothing and was not continued has nothing to train.
    const samples = buildSamples(result.turns).filter(({ oldest }) => oldest < Number.POSITIVE_INFINITY)
    return {
      ...{ id: rolloutId, taskId: result.taskId, reward: result.reward ?? 0, samples, facts: factsOf(result, samples) },
      oldest: Math.min(...samples.map(({ oldest }) => oldest)),
      detected: detect(this.#options.postFilters, result.turns),
      preDetected: detect(this.#options.preFilters, result.turns),
    }
  }

  /** Throws `ENVIRONMENT_INVALID` where nothing but failures comes from an environment, `ENGINE_FAILED` where its engines have been away for long. */
  #refuseFailing({ name, logs }: GroupPlan['environment'], { type, message }: { readonly type: string; readonly message: string }): void {
    const { errorLimit } = this.#options
    const isEngine = type.startsWith('Engine')
    const own = this.#failing.get(name) ?? { environment: 0, engine: 0 }
    own[isEngine ? 'engine' : 'environment']++
    this.#failing.set(name, own)
    if (own.environment < errorLimit && own.engine < outageLimit * errorLimit) return
    const count = isEngine ? own.engine : own.environment
    throw new TrilithonError(
      isEngine ? 'ENGINE_FAILED' : 'ENVIRONMENT_INVALID',
      `The last ${count} episodes of ${name} all failed; the last one: ${type}: ${message}`,
      {
        path: isEngine ? 'orchestrator.student.client' : 'orchestrator.train.env',
        hint: isEngine ? 'Look into the log of the engine.' : `Look into ${logs ?? 'the logs of its workers'}.`,
      },
    )
  }

  /** Rollouts of a group that has all it will ever have. */
  #complete(group: TrainGroup, rollouts: readonly Arrived[], advantage: Advantage): void {
    if (rollouts.length === 0) return
    const advantages = advantage({
      rollouts: rollouts.map(({ id, taskId, reward, facts }) => ({ ...facts, id, taskId, reward, environment: group.environment })),
      seqLen: this.#options.seqLen,
    })
    for (const [index, { preDetected, ...rollout }] of rollouts.entries()) {
      const own = advantages[index] ?? 0
      const preFilters = applyFilters(this.#options.preFilters, preDetected, own)
      for (const [name, isHit] of Object.entries(preFilters.hits)) if (isHit) count(this.#counts.preHits, name)
      if (preFilters.isFiltered) this.#counts.preFiltered++
      else this.#pending.push({ ...rollout, group, advantage: own, preFilters })
    }
  }
}

function noCounts(): SinkCounts {
  return {
    ...{ arrived: 0, errored: 0, errors: {}, erroredByEnvironment: {}, cancelled: 0, cancelledByEnvironment: {} },
    ...{ droppedCancelled: 0, droppedStale: 0, abandoned: 0, preFiltered: 0, preHits: {} },
  }
}

function count(counts: Record<string, number>, name: string, by = 1): void {
  counts[name] = (counts[name] ?? 0) + by
}

/** The error of a result, or why it is no rollout: an error never becomes a reward, an empty episode never a sample. */
export function errorOf({ error, turns, reward }: EpisodeResult): { readonly type: string; readonly message: string } | undefined {
  if (error !== undefined) return error
  if (!turns.some(({ completionIds }) => completionIds.length > 0))
    return { type: 'EmptyTrajectory', message: 'the policy sampled nothing' }
  if (reward === null || !Number.isFinite(reward)) return { type: 'RewardInvalid', message: `the reward is ${reward}` }
  for (const [index, turn] of turns.entries()) {
    const fault = findTurnFault(turn)
    if (fault !== undefined) return { type: 'EngineAnswerInvalid', message: `turn ${index}: ${fault}` }
  }
  return undefined
}

function factsOf(
  { turns, metrics, timing, stopCondition, isTruncated, extensionBreaks, state }: EpisodeResult,
  samples: readonly DraftSample[],
): RolloutFacts {
  const completionTokens = turns.reduce((sum, { completionIds }) => sum + completionIds.length, 0)
  const sequenceTokens = samples.reduce((sum, { promptIds, completionIds }) => sum + promptIds.length + completionIds.length, 0)
  return {
    ...{ turns: turns.length, completionTokens, sequenceTokens, prefillTokens: sequenceTokens - completionTokens },
    inputTokens: turns.reduce((sum, { promptIds }) => sum + promptIds.length, 0),
    ...{ metrics, timing, stopCondition, isTruncated, extensionBreaks, state },
  }
}
