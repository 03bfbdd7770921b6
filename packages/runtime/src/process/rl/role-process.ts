import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { TrilithonError } from '@trilithon/core'
import { isRoleEvent, launchedVariable, type RoleEvent, reviveError } from '@trilithon/monitor'
import type { RoleEnd, RolePlan } from './launcher.ts'

/** Variable of the environment that tells a role its name, where there are several of its kind. */
export const roleVariable = 'TRILITHON_ROLE'

/** Milliseconds that the last messages of a process may take behind its end. */
const drainMs = 500
/** Milliseconds that killed processes may take to be gone. */
const goneMs = 300

/** A role that runs, in a process group of its own: Ctrl-C on the terminal is the launcher's alone, and whatever a role has started ends with it. */
export class RoleProcess {
  readonly plan: RolePlan
  /** Resolves when the process and its group have ended. */
  readonly ended: Promise<RoleEnd>
  /** What the role said it failed with, first. */
  failure: TrilithonError | undefined
  /** The state it told last. */
  state = 'starting'
  readonly startedMs = performance.now()
  /** When it said that it is ready. */
  readyMs: number | undefined
  /** Why we ended it. */
  reason: string | undefined
  hasEnded = false
  /** Milliseconds (of `performance.now`) when it was last heard of; undefined for one that has told no state yet. */
  lastHeardMs: number | undefined
  readonly #child: ChildProcess

  constructor(plan: RolePlan, workingDirectory: string, onEvent: (event: RoleEvent) => void) {
    this.plan = plan
    const [program, ...words] = plan.command
    const log = openLog(plan.log)
    try {
      this.#child = spawn(program, words, {
        cwd: workingDirectory,
        env: { ...plan.environment, [launchedVariable]: '1', [roleVariable]: plan.name },
        // Output goes straight into the file: nothing is lost with the launcher.
        stdio: ['ignore', log, log, 'ipc'],
        // JSON has no NaN, and metrics may.
        serialization: 'advanced',
        detached: true,
      })
    } finally {
      closeSync(log)
    }
    const child = this.#child
    child.on('message', (message) => {
      if (!isRoleEvent(message)) return
      this.#take(message)
      onEvent(message)
    })
    this.ended = new Promise<RoleEnd>((resolve) => {
      const finish = (end: RoleEnd) => {
        this.kill()
        void this.#groupGone().then(() => {
          this.hasEnded = true
          resolve(end)
        })
      }
      child.on('error', (cause) => {
        if (child.pid !== undefined) return
        this.failure ??= new TrilithonError('TASK_FAILED', `${program} cannot be started: ${cause.message}`, { cause })
        finish({ status: null, signal: null })
      })
      child.on('exit', (status, signal) => {
        const end = { status, signal }
        if (!child.connected) return finish(end)
        // What it said last may still be on its way.
        const timer = setTimeout(() => finish(end), drainMs)
        child.once('disconnect', () => {
          clearTimeout(timer)
          finish(end)
        })
      })
    })
  }

  get isReady(): boolean {
    return this.readyMs !== undefined
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Asks the process to end in order. */
  stop(): void {
    this.#child.kill('SIGTERM')
  }

  /** Ends the process and everything in its group at once. */
  kill(): void {
    this.#signalGroup('SIGKILL')
  }

  /** Whether anybody was there to get the signal. */
  #signalGroup(signal: NodeJS.Signals | 0): boolean {
    const { pid } = this.#child
    if (pid === undefined || this.hasEnded) return false
    try {
      return process.kill(-pid, signal)
    } catch (error) {
      // Nobody is left in the group; macOS says EPERM of one whose last process has ended.
      if (['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
      throw error
    }
  }

  /** The killed end soon, but not within the call; one that nobody waits for (a container without an init) stays in the group for good. */
  async #groupGone(): Promise<void> {
    const deadlineMs = performance.now() + goneMs
    while (this.#signalGroup(0) && performance.now() < deadlineMs) await new Promise((resolve) => setTimeout(resolve, 5))
  }

  #take(event: RoleEvent): void {
    if (event.kind === 'ready') this.readyMs ??= performance.now()
    if (event.kind === 'failed') this.failure ??= reviveError(event.error)
    if (event.kind === 'status') this.state = event.state
    if (event.kind === 'status' || this.lastHeardMs !== undefined) this.lastHeardMs = performance.now()
  }
}

function openLog(path: string): number {
  try {
    return openSync(path, 'a')
  } catch (cause) {
    throw new TrilithonError('OUTPUT_UNUSABLE', `${path} cannot be written: ${(cause as Error).message}`, {
      path: 'output_dir',
      hint: 'Choose another folder with --output-dir.',
      cause,
    })
  }
}
