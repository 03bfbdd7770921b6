import { EpisodeFailure, untilAborted } from '../episode/episode-failure.ts'
import type { WorkerProcess } from './worker-process.ts'

/**
 * A worker for requests that are suspected of holding or of ending theirs: one runs at a time, so it disturbs nobody, and what happens to the worker is its
 * doing. Started for the first of them.
 */
export class LoneWorker {
  readonly #spawn: () => WorkerProcess
  #worker: WorkerProcess | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(spawn: () => WorkerProcess) {
    this.#spawn = spawn
  }

  /** Runs `work` when it has its turn. Rejects with `Cancelled`, or with `WorkerDied` where no worker starts. */
  run<Value>(signal: AbortSignal, work: (worker: WorkerProcess) => Promise<Value>): Promise<Value> {
    const before = this.#last
    const mine = (async () => {
      await untilAborted(before, signal).catch(() => {
        throw new EpisodeFailure('Cancelled', 'the episode was cancelled')
      })
      return work(await this.#ready())
    })()
    this.#last = Promise.allSettled([before, mine])
    return mine
  }

  async stop(): Promise<void> {
    await this.#worker?.stop()
  }

  async #ready(): Promise<WorkerProcess> {
    if (this.#worker === undefined || this.#worker.state === 'ended') this.#worker = this.#spawn()
    try {
      await this.#worker.ready
    } catch (error) {
      throw new EpisodeFailure('WorkerDied', `no worker can be started: ${(error as Error).message}`)
    }
    return this.#worker
  }
}
