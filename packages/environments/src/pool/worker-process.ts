import { type ChildProcess, fork } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ErrorCode, type Logger, TrilithonError } from '@trilithon/core'
import { FrameClient } from '../protocol/frame-client.ts'
import type { WorkerMessage, WorkerSetup } from '../worker/run-environment-worker.ts'

export interface WorkerProcessOptions {
  readonly index: number
  readonly entry: { readonly file: string; readonly arguments?: readonly string[] }
  readonly setup: WorkerSetup
  readonly logFolder: string | null
  readonly startTimeoutMs: number
  readonly pingIntervalMs: number
  readonly unresponsiveMs: number
  readonly log: Logger
}

/** How long, and how often, a process that is held is asked who holds it. */
const longestSearchMs = 2000
const searchMs = 50

/** Whoever waits for something of the worker: told when it ends. */
export interface WorkerGuest {
  /** Of its request. */
  readonly id: string
  /** Episodes that it runs. */
  readonly rolloutIds: readonly string[]
  onDeath(death: ProcessDeath): void
}

/** How a worker process ended. */
export interface ProcessDeath {
  /** One sentence. */
  readonly reason: string
  /** Id of the request whose code held it or ended it; undefined where nobody knows, as when it was killed from outside. */
  readonly culprit: string | undefined
  /** Requests that ran there. */
  readonly guests: number
  /** Whether it was killed because it did not answer: at a deadline, or for `unresponsiveMs`. */
  readonly held: 'deadline' | 'silence' | null
}

/** A child process that serves an environment, from its start to its end. */
export class WorkerProcess {
  readonly index: number
  /** Resolves when it can be asked; rejects with `ENVIRONMENT_INVALID` or `TASK_FAILED` where it cannot. */
  readonly ready: Promise<void>
  /** Resolves with one sentence when the process has ended, whatever the reason. */
  readonly ended: Promise<string>
  readonly frames: FrameClient
  state: 'starting' | 'ready' | 'ended' = 'starting'
  /** Episodes that ran when the process ended. */
  interrupted: readonly string[] = []
  readonly #guests = new Set<WorkerGuest>()
  #load = 0
  readonly #child: ChildProcess
  readonly #culpritFile: string
  #reason: string | undefined
  #held: ProcessDeath['held'] = null
  #pings: NodeJS.Timeout | undefined

  constructor(options: WorkerProcessOptions) {
    const { index, setup, log } = options
    this.index = index
    this.#culpritFile = setup.culpritFile
    const output = openLog(options)
    this.#child = fork(options.entry.file, options.entry.arguments ?? [], {
      cwd: setup.environment.workingDirectory,
      execArgv: [],
      stdio: ['ignore', output, output, 'ipc'],
    })
    if (typeof output === 'number') closeSync(output)
    this.frames = new FrameClient(setup.endpoint, log)
    this.ended = new Promise((resolve) => {
      const end = (reason: string) => {
        if (this.state === 'ended') return
        this.state = 'ended'
        clearInterval(this.#pings)
        const sentence = this.#reason ?? reason
        this.interrupted = [...this.#guests].flatMap(({ rolloutIds }) => rolloutIds)
        const death = { reason: sentence, culprit: this.#readCulprit(), guests: this.#guests.size, held: this.#held }
        for (const guest of [...this.#guests]) guest.onDeath(death)
        void this.frames.close()
        resolve(sentence)
      }
      this.#child.once('exit', (code, signal) => end(signal === null ? `it ended with status ${code}` : `it was killed by ${signal}`))
      this.#child.once('error', (error) => end(`it could not be started: ${error.message}`))
    })
    this.ready = this.#start(options)
  }

  /** Episodes that run there. */
  get load(): number {
    return this.#load
  }

  enter(guest: WorkerGuest): void {
    this.#guests.add(guest)
    this.#load += guest.rolloutIds.length
  }

  leave(guest: WorkerGuest): void {
    if (this.#guests.delete(guest)) this.#load -= guest.rolloutIds.length
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Ends the process at once; `reason` is what is told. */
  kill(reason: string, held: ProcessDeath['held'] = null): void {
    this.#reason ??= reason
    this.#held ??= held
    this.#child.kill('SIGKILL')
  }

  /** Ends a process that does not answer, when it has been found out whose code holds it, or after a while without that. */
  killHeld(reason: string, held: 'deadline' | 'silence'): void {
    if (this.#held !== null) return
    this.#reason ??= reason
    this.#held = held
    const begun = performance.now()
    const look = () => {
      if (this.state === 'ended') return
      if (existsSync(this.#culpritFile) || performance.now() - begun >= longestSearchMs) this.#child.kill('SIGKILL')
      else setTimeout(look, searchMs)
    }
    look()
  }

  #readCulprit(): string | undefined {
    try {
      return readFileSync(this.#culpritFile, 'utf8')
    } catch (error) {
      // Nobody was found, which is no fault.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  /** Lets the process end by itself, and helps where it does not. */
  async stop(graceMs = 500): Promise<void> {
    this.#reason ??= 'it was stopped'
    if (this.#child.connected) this.#child.disconnect()
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), graceMs)
    await this.ended
    clearTimeout(timer)
  }

  async #start({ setup, startTimeoutMs, pingIntervalMs, unresponsiveMs, logFolder, index }: WorkerProcessOptions): Promise<void> {
    const where = logFolder === null ? '' : `; see ${join(logFolder, logName(index))}`
    const failed = (reason: string) =>
      new TrilithonError('TASK_FAILED', `worker ${index} of the environment ${setup.environment.id}: ${reason}${where}`)
    let timer: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        timer = setTimeout(() => {
          this.kill(`it was not ready after ${startTimeoutMs / 1000} s`)
        }, startTimeoutMs)
        this.#child.once('message', (message: WorkerMessage) => {
          if (message.kind === 'ready') resolve()
          else reject(revive(message.error, logFolder === null ? null : join(logFolder, logName(index))))
        })
        void this.ended.then((reason) => reject(failed(reason)))
        this.#child.send(setup, (error) => {
          if (error !== null) this.kill(`its setup could not be sent: ${error.message}`)
        })
      })
    } finally {
      clearTimeout(timer)
    }
    this.state = 'ready'
    this.#pings = setInterval(this.#watch(pingIntervalMs, unresponsiveMs), pingIntervalMs)
    this.#pings.unref()
  }

  /** Counts probes without an answer, not time: while this process itself is busy it sends none. */
  #watch(pingIntervalMs: number, unresponsiveMs: number): () => void {
    let missed = 0
    let isWaiting = false
    return () => {
      if (isWaiting) missed++
      if (missed * pingIntervalMs >= unresponsiveMs) this.killHeld(`it did not answer for ${unresponsiveMs / 1000} s`, 'silence')
      if (isWaiting) return
      isWaiting = true
      this.frames.ping(() => {
        isWaiting = false
        missed = 0
      })
    }
  }
}

function logName(index: number): string {
  return `env_worker_${index}.log`
}

function openLog({ logFolder, index }: WorkerProcessOptions): number | 'ignore' {
  if (logFolder === null) return 'ignore'
  mkdirSync(logFolder, { recursive: true })
  return openSync(join(logFolder, logName(index)), 'a')
}

/** The stack of what was thrown is in the log of the worker. */
function revive({ code, message, path, hint }: Extract<WorkerMessage, { kind: 'failed' }>['error'], log: string | null): TrilithonError {
  const hints = [...(hint === undefined ? [] : [hint]), ...(log === null ? [] : [`The log of the worker: ${log}.`])]
  return new TrilithonError(code as ErrorCode, message, { path, ...(hints.length === 0 ? {} : { hint: hints.join(' ') }) })
}
