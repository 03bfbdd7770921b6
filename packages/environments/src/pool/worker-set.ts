import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type Logger, type LogLevel, TrilithonError } from '@trilithon/core'
import { EpisodeFailure, sleep, untilAborted } from '../episode/episode-failure.ts'
import type { LoadEnvironmentOptions } from '../load/load-environment.ts'
import { type DescriptionMessage, type FinalMessage, inputsOf, type RunMessage } from '../protocol/messages.ts'
import type { RendererDescription } from '../turn-renderer.ts'
import { askDescription } from './ask-description.ts'
import type { Backend, CallOptions } from './backend.ts'
import { type CallOutcome, callWorker } from './call-worker.ts'
import type { WorkerDeath } from './environment-pool.ts'
import { LoneWorker } from './lone-worker.ts'
import { makeSocketFolder, removeSocketFolder } from './socket-folder.ts'
import { Trial } from './trial.ts'
import { WorkerProcess } from './worker-process.ts'

export interface WorkerSetOptions {
  readonly environment: LoadEnvironmentOptions
  readonly workers: number
  readonly entry: { readonly file: string; readonly arguments?: readonly string[] }
  readonly logFolder: string | null
  readonly logLevel: LogLevel
  readonly logsData: boolean
  readonly log: Logger
  /** Made once at the start, so that one that cannot be made is told of then; null where only requests name one. */
  readonly renderer: RendererDescription | null
  readonly onWorkerDeath?: ((death: WorkerDeath) => void) | undefined
  readonly startTimeoutS: number
  readonly unresponsiveS: number
}

const pingIntervalMs = 1000
/** Starts in a row that may fail before a worker is given up. */
const mostFailedStarts = 5
const firstRestartWaitMs = 200
const mostSuspects = 1024
/** After so many deaths of workers, and not one answer between them, retries only put off the error. */
const mostDeathsInARow = 10

/**
 * Worker processes of one environment. A request goes to the one with the fewest episodes; one that ends is replaced, and what ran there runs again. Whoever is
 * suspected of its end runs alone, in one more process.
 */
export class WorkerSet implements Backend {
  description: DescriptionMessage = { name: '', scoring: 'rollout', tasks: null, eval_tasks: null }
  readonly counters = { workers: 0, deaths: 0, rerun: 0 }
  readonly #options: WorkerSetOptions
  /** A folder of its own, so that the names of its sockets meet nobody else's. */
  readonly #folder: string
  readonly #workers = new Map<number, WorkerProcess>()
  readonly #waiting = new Set<() => void>()
  readonly #disposal = new AbortController()
  readonly #lone = new LoneWorker(() => this.#spawnLone())
  /** Tasks whose code held or ended a worker; until an episode of theirs ends otherwise. */
  readonly #suspects = new Set<string>()
  #deathsInARow = 0
  /** Workers that were given up, and why. */
  readonly #lost: string[] = []
  #sockets = 0

  private constructor(options: WorkerSetOptions) {
    this.#options = options
    this.#folder = makeSocketFolder()
    this.counters.workers = options.workers
  }

  /** Resolves when all workers are ready. Throws `ENVIRONMENT_INVALID`, `TASK_FAILED`; then nothing is left. */
  static async start(options: WorkerSetOptions): Promise<WorkerSet> {
    const set = new WorkerSet(options)
    try {
      const started = Array.from({ length: options.workers }, (_, index) => set.#spawn(index))
      await Promise.all(started.map(({ ready }) => ready))
      const [first] = started
      if (first !== undefined) {
        const ended = first.ended.then((reason) =>
          Promise.reject(new TrilithonError('TASK_FAILED', `worker 0 of ${options.environment.id}: ${reason}`)),
        )
        set.description = await Promise.race([askDescription(first.frames, options.renderer), ended])
      }
      for (const worker of started) set.#keep(worker)
      return set
    } catch (error) {
      await set.dispose()
      throw error
    }
  }

  async call(message: RunMessage, { signal, onTurn, onAgain }: CallOptions): Promise<FinalMessage> {
    const rolloutIds = inputsOf(message).map(({ rollout_id }) => rollout_id)
    const task = taskOf(message)
    const trial = new Trial(message)
    for (;;) {
      const ask = (worker: WorkerProcess) =>
        callWorker(worker, {
          ...{ message: { ...message, first_attempt: trial.attempt, max_retries: trial.maxRetries }, rolloutIds, signal },
          deadline: message.deadline_ms === null ? null : performance.now() + message.deadline_ms,
          onTurn: (turn) => {
            trial.attempt = Math.max(trial.attempt, turn.attempt)
            onTurn(turn)
          },
        })
      const isAlone = trial.isSuspect || this.#suspects.has(task)
      const outcome = isAlone ? await this.#askAlone(ask, signal, onAgain) : await this.#askShared(ask, signal, onAgain)
      if (outcome.final !== undefined) {
        this.#deathsInARow = 0
        if (isAlone) this.#suspects.delete(task)
        return outcome.final
      }
      this.#disposal.signal.throwIfAborted()
      const { death } = outcome
      if (death.part === 'culprit') this.#suspect(task)
      const failure = trial.lost(death, { isAlone, isHopeless: this.#deathsInARow >= mostDeathsInARow })
      if (failure !== undefined) throw failure
      this.counters.rerun += rolloutIds.length
      onAgain?.()
      // All that ran there hear of the end one after the other; only then it is known which tasks are suspected.
      await setImmediate()
    }
  }

  async dispose(): Promise<void> {
    this.#disposal.abort(new EpisodeFailure('Cancelled', 'the pool was disposed of'))
    await Promise.all([...[...this.#workers.values()].map((worker) => worker.stop()), this.#lone.stop()])
    removeSocketFolder(this.#folder)
  }

  async #askShared(
    ask: (worker: WorkerProcess) => Promise<CallOutcome>,
    signal: AbortSignal,
    onAgain: CallOptions['onAgain'],
  ): Promise<CallOutcome> {
    // Nothing may come between the choice and the call, or many calls would choose the same.
    let worker = this.#leastBusy(signal)
    while (worker === undefined) {
      onAgain?.()
      await this.#untilOneIsReady(signal)
      worker = this.#leastBusy(signal)
    }
    return ask(worker)
  }

  #askAlone(
    ask: (worker: WorkerProcess) => Promise<CallOutcome>,
    signal: AbortSignal,
    onAgain: CallOptions['onAgain'],
  ): Promise<CallOutcome> {
    onAgain?.()
    return this.#lone.run(AbortSignal.any([signal, this.#disposal.signal]), (worker) => {
      this.#disposal.signal.throwIfAborted()
      onAgain?.()
      return ask(worker)
    })
  }

  #suspect(task: string): void {
    this.#suspects.add(task)
    const [oldest] = this.#suspects
    if (this.#suspects.size > mostSuspects && oldest !== undefined) this.#suspects.delete(oldest)
  }

  #spawnLone(): WorkerProcess {
    const worker = this.#create(this.#options.workers)
    void worker.ended.then((reason) => this.#tellEnd(worker, reason))
    return worker
  }

  #spawn(index: number): WorkerProcess {
    const worker = this.#create(index)
    this.#workers.set(index, worker)
    return worker
  }

  #create(index: number): WorkerProcess {
    const { entry, environment, logFolder, logLevel, logsData, log, startTimeoutS, unresponsiveS } = this.#options
    const socket = join(this.#folder, String(this.#sockets++))
    const worker = new WorkerProcess({
      index,
      entry,
      setup: {
        endpoint: `ipc://${socket}`,
        culpritFile: `${socket}.culprit`,
        environment,
        parentPid: process.pid,
        logLevel,
        logsData,
      },
      logFolder,
      startTimeoutMs: startTimeoutS * 1000,
      pingIntervalMs,
      unresponsiveMs: unresponsiveS * 1000,
      log,
    })
    worker.ready.catch(() => undefined)
    return worker
  }

  /** Looks after a worker that is ready: it is replaced when it ends. */
  #keep(worker: WorkerProcess): void {
    for (const wake of this.#waiting) wake()
    void worker.ended.then(async (reason) => {
      if (this.#disposal.signal.aborted) return
      this.#tellEnd(worker, reason)
      await this.#replace(worker.index)
    })
  }

  #tellEnd(worker: WorkerProcess, reason: string): void {
    if (this.#disposal.signal.aborted) return
    const { log, onWorkerDeath } = this.#options
    const rolloutIds = worker.interrupted
    this.counters.deaths++
    this.#deathsInARow++
    log.warn('an environment worker ended', {
      environment: this.description.name,
      worker: worker.index,
      pid: worker.pid,
      reason,
      episodes: rolloutIds.length,
    })
    onWorkerDeath?.({ worker: worker.index, pid: worker.pid, reason, rolloutIds })
  }

  async #replace(index: number): Promise<void> {
    const { signal } = this.#disposal
    for (let failed = 0; failed < mostFailedStarts; failed++) {
      if (failed > 0) await sleep(firstRestartWaitMs * 2 ** failed, signal).catch(() => undefined)
      if (signal.aborted) return
      const worker = this.#spawn(index)
      try {
        await worker.ready
        this.#keep(worker)
        return
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        this.#options.log.warn('an environment worker did not start', { worker: index, reason })
        await worker.stop()
        if (failed === mostFailedStarts - 1) this.#lost.push(reason)
      }
    }
    this.#workers.delete(index)
    for (const wake of this.#waiting) wake()
  }

  /** The ready worker with the fewest episodes, the lower index of several; undefined while all are being replaced. */
  #leastBusy(signal: AbortSignal): WorkerProcess | undefined {
    this.#disposal.signal.throwIfAborted()
    if (signal.aborted) throw new EpisodeFailure('Cancelled', 'the episode was cancelled')
    let least: WorkerProcess | undefined
    for (const worker of this.#workers.values()) {
      if (worker.state === 'ready' && (least === undefined || worker.load < least.load)) least = worker
    }
    if (least === undefined && this.#workers.size === 0)
      throw new EpisodeFailure('WorkerDied', `no worker can be started: ${this.#lost[0] ?? 'none was asked for'}`)
    return least
  }

  async #untilOneIsReady(signal: AbortSignal): Promise<void> {
    let wake: (() => void) | undefined
    const woken = new Promise<void>((resolve) => {
      wake = resolve
      this.#waiting.add(resolve)
    })
    try {
      await untilAborted(woken, AbortSignal.any([signal, this.#disposal.signal]))
    } catch (error) {
      if (signal.aborted) throw new EpisodeFailure('Cancelled', 'the episode was cancelled')
      throw error
    } finally {
      if (wake !== undefined) this.#waiting.delete(wake)
    }
  }
}

/** Of all episodes of a group. */
function taskOf(message: RunMessage): string {
  const [first] = inputsOf(message)
  return `${first?.split}/${first?.example_id}/${first?.seed}`
}
