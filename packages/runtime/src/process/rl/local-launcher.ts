import { invariant } from '@trilithon/core'
import type { Launcher, LaunchOptions, RoleEnd } from './launcher.ts'
import { firstCause, type RoleFailure, roleEnded } from './role-failure.ts'
import { RoleProcess } from './role-process.ts'

export interface LocalLauncherOptions {
  /** Milliseconds that a role may take to end in order; then it is killed. One that is saving may take longer. */
  readonly graceMs?: number
  /** Milliseconds without a sign of life after which a role counts as hanging. */
  readonly silenceMs?: number
}

/** Milliseconds in which failures count as one event. */
const gatherMs = 200
const lookEveryMs = 500

/** Runs roles as processes of this machine. */
export function createLocalLauncher({ graceMs = 5000, silenceMs = 120_000 }: LocalLauncherOptions = {}): Launcher {
  return { launch: (options) => new LocalRun(options, graceMs, silenceMs).run() }
}

class LocalRun {
  readonly #options: LaunchOptions
  readonly #graceMs: number
  readonly #silenceMs: number
  readonly #roles: RoleProcess[] = []
  readonly #failures: RoleFailure[] = []
  readonly #startedMs = performance.now()
  #isStopping = false
  #wake: () => void = () => undefined

  constructor(options: LaunchOptions, graceMs: number, silenceMs: number) {
    this.#options = options
    this.#graceMs = graceMs
    this.#silenceMs = silenceMs
  }

  async run(): Promise<'done' | 'interrupted'> {
    const { roles, workingDirectory, signal, onStart, onEvent, onEnd } = this.#options
    // Also when this process ends in a hurry.
    const killAll = () => {
      for (const role of this.#roles) role.kill()
    }
    const wake = () => this.#wake()
    process.on('exit', killAll)
    signal.addEventListener('abort', wake)
    try {
      for (const plan of roles) {
        const role = new RoleProcess(plan, workingDirectory, (event) => onEvent(plan.name, event))
        this.#roles.push(role)
        if (role.pid !== undefined) onStart?.(plan.name, role.pid)
        void role.ended.then((end) => {
          onEnd(plan.name, end)
          this.#noteEnd(role, end)
        })
      }
      await this.#untilOver()
      if (this.#failures.length > 0) await pause(gatherMs)
      this.#isStopping = true
      // Which of them explains the others is decided by what happened before we ended anything.
      const cause = firstCause(this.#failures)
      await this.#stop('work')
      await this.#stop('service')
      if (cause !== undefined) throw roleEnded(cause, workingDirectory)
      return signal.aborted ? 'interrupted' : 'done'
    } finally {
      killAll()
      await Promise.all(this.#roles.map(({ ended }) => ended))
      process.off('exit', killAll)
      signal.removeEventListener('abort', wake)
    }
  }

  #noteEnd(role: RoleProcess, end: RoleEnd): void {
    const isInOrder = end.status === 0 && role.failure === undefined && role.plan.purpose === 'work'
    if (!isInOrder && !this.#isStopping) this.#failures.push({ role, end })
    this.#wake()
  }

  /** Resolves when the work is done, a role has failed or is lost, or the signal is there. */
  async #untilOver(): Promise<void> {
    while (!this.#options.signal.aborted && this.#failures.length === 0 && !this.#isDone()) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, lookEveryMs)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      this.#findLost()
    }
  }

  #isDone(): boolean {
    return this.#roles.every(({ plan, hasEnded }) => hasEnded || plan.purpose === 'service')
  }

  #findLost(): void {
    const nowMs = performance.now()
    const { readyTimeoutMs } = this.#options
    for (const role of this.#roles) {
      if (role.hasEnded) continue
      if (!role.isReady && nowMs - this.#startedMs > readyTimeoutMs)
        this.#failures.push({ role, end: undefined, reason: `was not ready within ${readyTimeoutMs / 1000} s` })
      else if (role.lastHeardMs !== undefined && nowMs - role.lastHeardMs > this.#silenceMs)
        this.#failures.push({ role, end: undefined, reason: `gave no sign of life for ${this.#silenceMs / 1000} s` })
    }
  }

  /** Ends the roles of one purpose in order, and after a while without asking. */
  async #stop(purpose: 'work' | 'service'): Promise<void> {
    const roles = this.#roles.filter(({ plan }) => plan.purpose === purpose)
    await Promise.all(
      roles.map(async (role) => {
        role.stop()
        let deadlineMs = performance.now() + this.#graceMs
        while (!role.hasEnded) {
          await Promise.race([role.ended, pause(50)])
          const nowMs = performance.now()
          // A checkpoint takes as long as its disk does; the sign of life says that it is being written.
          const isSaving = role.state.startsWith('saving') && nowMs - (role.lastHeardMs ?? 0) < this.#graceMs
          if (isSaving) deadlineMs = nowMs + this.#graceMs
          if (nowMs > deadlineMs) role.kill()
        }
      }),
    )
    invariant(
      roles.every(({ hasEnded }) => hasEnded),
      'a role that was stopped has ended',
    )
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
