import { TrilithonError } from '@trilithon/core'
import { type EvalEpisode, evalRecord } from '../batch/rollout-record.ts'
import type { EpisodeEnvironment, GroupPlan } from '../dispatch/group-plan.ts'
import type { Clock } from '../run/clock.ts'
import { evalSummary } from './eval-summary.ts'

export interface EvalEnvironment {
  readonly environment: EpisodeEnvironment
  readonly groupSize: number
  /** `num_examples`: tasks per evaluation, -1 for all. */
  readonly examples: number
  /** Steps between two evaluations. */
  readonly interval: number
}

export interface EvalRunsOptions {
  readonly environments: readonly EvalEnvironment[]
  readonly clock: Clock
  /** Called when the last episode of an environment is in. */
  readonly onDone: (result: EvalResult) => void
}

export interface EvalResult {
  readonly step: number
  readonly environment: string
  /** Under prime-rl's names. */
  readonly values: Readonly<Record<string, number>>
  /** Lines of `eval_rollouts_<env>.jsonl`. */
  readonly records: readonly Record<string, unknown>[]
}

interface EvalRun {
  readonly step: number
  readonly of: EvalEnvironment
  readonly tasks: number
  next: number
  open: number
  startedMs: number | null
  readonly episodes: EvalEpisode[]
}

/** Evaluations that are under way: their groups, environment by environment in turns, and what comes of them. */
export class EvalRuns {
  readonly #options: EvalRunsOptions
  #runs: EvalRun[] = []
  #turn = 0

  constructor(options: EvalRunsOptions) {
    this.#options = options
    for (const of of options.environments) tasksOf(of)
  }

  get isIdle(): boolean {
    return this.#runs.length === 0
  }

  /** Episodes of groups that were not begun. */
  get queued(): number {
    return this.#runs.reduce((sum, { next, tasks, of }) => sum + (tasks - next) * of.groupSize, 0)
  }

  /** Begins an evaluation of those environments. */
  fire(step: number, environments: readonly EvalEnvironment[] = this.#options.environments): void {
    for (const of of environments) this.#runs.push({ ...{ step, of, tasks: tasksOf(of), next: 0, open: 0, startedMs: null }, episodes: [] })
  }

  /** The next group to begin. */
  next(): GroupPlan | undefined {
    const waiting = this.#runs.filter(({ next, tasks }) => next < tasks)
    const run = waiting[this.#turn++ % waiting.length]
    return run === undefined ? undefined : this.#plan(run)
  }

  #plan(run: EvalRun): GroupPlan {
    const { environment, groupSize } = run.of
    const taskIndex = run.next++
    const id = `eval-${environment.name}-${run.step}-${taskIndex}`
    run.open++
    run.startedMs ??= this.#options.clock.nowMs()
    return {
      ...{ id, kind: 'eval', environment, taskIndex, size: groupSize },
      finished: (episode, { version, isLast }) => {
        run.episodes.push({ ...episode, groupId: id, taskIndex, groupVersion: version })
        if (!isLast) return
        run.open--
        if (run.open === 0 && run.next >= run.tasks) this.#end(run)
      },
      // Evaluations are only given up when the run ends.
      cancelled: () => {
        this.#runs = this.#runs.filter((one) => one !== run)
      },
    }
  }

  #end(run: EvalRun): void {
    this.#runs = this.#runs.filter((one) => one !== run)
    const { step, of, startedMs } = run
    // Not in the order in which they came: sums of the same rewards are then the same to the last bit.
    const episodes = [...run.episodes].sort((one, other) => one.taskIndex - other.taskIndex || placeOf(one) - placeOf(other))
    const { name } = of.environment
    const nowMs = this.#options.clock.nowMs()
    this.#options.onDone({
      ...{ step, environment: name },
      values: evalSummary({ environment: name, groupSize: of.groupSize, episodes, time: (nowMs - (startedMs ?? nowMs)) / 1000 }),
      records: episodes.map((episode) => evalRecord(episode, name, step)),
    })
  }
}

/** Place in its group. */
const placeOf = ({ rolloutId }: EvalEpisode): number => Number(rolloutId.slice(rolloutId.lastIndexOf('.') + 1))

/** Throws `CONFIG_VALUE_CONFLICT` for all tasks of an environment that has no end. */
function tasksOf({ environment, examples }: EvalEnvironment): number {
  const { evalTasks } = environment.pool
  if (examples !== -1) return evalTasks === null ? examples : Math.min(examples, evalTasks)
  if (evalTasks !== null) return evalTasks
  throw new TrilithonError('CONFIG_VALUE_CONFLICT', `${environment.name} has endless tasks, and an evaluation takes all of them`, {
    path: 'orchestrator.eval.num_examples',
    hint: 'Set num_examples to a number of tasks.',
  })
}
