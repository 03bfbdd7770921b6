import { environmentName } from '../configuration/environment-name.ts'
import { describeFailure, EpisodeFailure } from '../episode/episode-failure.ts'
import type { EpisodeOutput } from '../episode/run-episodes.ts'
import type { FinalMessage, RunMessage } from '../protocol/messages.ts'
import type { Backend } from './backend.ts'
import type { EnvironmentPool, EnvironmentPoolOptions, EpisodeRequest, EpisodeResult, RunOptions } from './environment-pool.ts'
import { groupMessage, rolloutMessage } from './episode-message.ts'
import { RemoteServer } from './remote-server.ts'
import { TurnCollector } from './turn-collector.ts'
import { WorkerSet } from './worker-set.ts'

/**
 * Starts the worker processes of an environment, or connects to the server at `address`, and resolves when episodes can run. Throws `ENVIRONMENT_INVALID`
 * where the environment cannot be loaded, what the renderer throws where it cannot be made, `TASK_FAILED` where a worker does not start or the server does not answer; then no process is left.
 */
export async function createEnvironmentPool(options: EnvironmentPoolOptions): Promise<EnvironmentPool> {
  const { id, name, args = {}, settings = {}, address = null, log, startTimeoutS = 600, workingDirectory = process.cwd() } = options
  const shownName = environmentName({ id, name })
  const ownLog = log.child({ environment: shownName })
  const backend: Backend =
    address === null
      ? await WorkerSet.start({
          environment: { id, name: shownName, args, settings, workingDirectory },
          workers: options.workers,
          entry: options.workerEntry,
          logFolder: options.logFolder ?? null,
          logLevel: options.logLevel ?? 'info',
          logsData: options.logsData ?? false,
          renderer: options.renderer,
          log: ownLog,
          onWorkerDeath: options.onWorkerDeath,
          startTimeoutS,
          unresponsiveS: options.unresponsiveS ?? 30,
        })
      : await RemoteServer.connect({ address, startTimeoutS, renderer: options.renderer, log: ownLog })
  return new Pool(shownName, backend, options)
}

class Pool implements EnvironmentPool {
  readonly name: string
  readonly #backend: Backend
  readonly #options: EnvironmentPoolOptions
  #inFlight = 0
  #finished = 0

  constructor(name: string, backend: Backend, options: EnvironmentPoolOptions) {
    this.name = name
    this.#backend = backend
    this.#options = options
  }

  get tasks(): number | null {
    return this.#backend.description.tasks
  }

  get evalTasks(): number | null {
    return this.#backend.description.eval_tasks
  }

  get scoring(): 'rollout' | 'group' {
    return this.#backend.description.scoring
  }

  get stats() {
    const { workers, deaths: workerDeaths, rerun } = this.#backend.counters
    return { workers, workerDeaths, rerun, inFlight: this.#inFlight, finished: this.#finished }
  }

  async run(episode: EpisodeRequest, { signal, onTurn }: RunOptions): Promise<EpisodeResult> {
    const [result] = await this.#call([episode], rolloutMessage(episode, this.#options), signal, onTurn)
    return result ?? failed(episode, [], new Error('no result'), 0)
  }

  async runGroup(episodes: readonly EpisodeRequest[], { signal, onTurn }: RunOptions): Promise<EpisodeResult[]> {
    const [first, ...others] = episodes
    if (first === undefined) return []
    return this.#call(episodes, groupMessage([first, ...others], this.#options), signal, onTurn)
  }

  dispose(): Promise<void> {
    return this.#backend.dispose()
  }

  async #call(
    episodes: readonly EpisodeRequest[],
    message: RunMessage,
    signal: AbortSignal,
    onTurn: RunOptions['onTurn'],
  ): Promise<EpisodeResult[]> {
    const began = performance.now()
    const collectors = episodes.map(() => new TurnCollector())
    this.#inFlight += episodes.length
    try {
      const final = await this.#backend.call(message, {
        signal,
        onTurn: (frame) => {
          const turn = collectors[frame.episode]?.take(frame)
          if (turn !== undefined) onTurn?.(turn, frame.attempt)
        },
      })
      const outputs = outputsOf(final)
      return episodes.map((episode, index) => resultOf(episode, outputs[index], collectors[index] ?? new TurnCollector(), began))
    } catch (error) {
      return episodes.map((episode, index) => failed(episode, collectors[index]?.turns ?? [], error, began))
    } finally {
      this.#inFlight -= episodes.length
      this.#finished += episodes.length
    }
  }
}

type Output = EpisodeOutput & { readonly numTurns: number }

function outputsOf({ success, error, output, outputs }: FinalMessage): readonly (Output | undefined)[] {
  if (!success) throw Object.assign(new Error(error?.message ?? 'the worker gave no reason'), { name: error?.type ?? 'Error' })
  return (outputs ?? [output]) as readonly Output[]
}

/** Nothing but a finite number of the environment itself is a reward, whoever served it. */
function resultOf(episode: EpisodeRequest, output: Output | undefined, collector: TurnCollector, began: number): EpisodeResult {
  if (output === undefined)
    return failed(episode, collector.turns, new EpisodeFailure('WorkerDied', 'the answer has no result for this episode'), began)
  const { attempt, numTurns, reward, error, ...rest } = output
  const turns = collector.complete(attempt, numTurns)
  if (error !== undefined) return { ...rest, reward: null, error, turns: turns ?? [] }
  if (turns === undefined)
    return failed(episode, [], new EpisodeFailure('WorkerDied', `turns of ${numTurns} were lost on their way`), began)
  if (typeof reward !== 'number' || !Number.isFinite(reward))
    return failed(episode, turns, new EpisodeFailure('RewardInvalid', `the reward is ${String(reward)}, not a finite number`), began)
  return { ...rest, reward, turns }
}

function failed(episode: EpisodeRequest, turns: EpisodeResult['turns'], error: unknown, began: number): EpisodeResult {
  const total = (performance.now() - began) / 1000
  return {
    turns,
    reward: null,
    metrics: {},
    error: describeFailure(error),
    timing: { total, generation: 0, model: 0, scoring: 0 },
    stopCondition: 'error',
    isTruncated: false,
    taskId: `${episode.split}/${episode.taskIndex}`,
    extensionBreaks: 0,
    state: {},
  }
}
