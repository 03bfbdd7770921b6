import { invariant } from '@trilithon/core'
import type { Launcher, LaunchOptions, RoleEnd, RolePlan } from './launcher.ts'
import { causeOf, firstCause, isConsequence, logOf, type RoleFailure, roleEnded } from './role-failure.ts'
import { RoleProcess } from './role-process.ts'

export interface LocalLauncherOptions {
  /** Milliseconds that a role may take to end in order; then it is killed. One that is saving may take longer. */
  readonly graceMs?: number
  /** Milliseconds without a sign of life after which a role counts as hanging. */
  readonly silenceMs?: number
  /** Milliseconds before the first restart of a service; each one in a row waits twice as long. */
  readonly backOffMs?: number
  /** Milliseconds of service after which restarts are counted from the beginning. */
  readonly steadyMs?: number
}

/** Milliseconds in which failures count as one event. */
const gatherMs = 200
const lookEveryMs = 500
const longestBackOffMs = 30_000
/** Exit statuses of a role that did not crash: done, refused what it was told, cannot do it here, was asked to end. */
const decided: readonly (number | null)[] = [0, 2, 3, 130, null]

/** Runs roles as processes of this machine. */
export function createLocalLauncher({
  graceMs = 5000,
  silenceMs = 120_000,
  backOffMs = 1000,
  steadyMs = 600_000,
}: LocalLauncherOptions = {}): Launcher {
  return { launch: (options) => new LocalRun(options, { graceMs, silenceMs, backOffMs, steadyMs }).run() }
}

/** A service between its death and the next time that it is ready. */
interface Recovery {
  readonly attempt: number
  readonly death: RoleFailure
}

class LocalRun {
  readonly #options: LaunchOptions
  readonly #times: Required<LocalLauncherOptions>
  /** The last process of each role. */
  readonly #roles: RoleProcess[] = []
  readonly #failures: RoleFailure[] = []
  /** The last one of each service that had one. */
  readonly #recoveries = new Map<RolePlan, Recovery>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #isStopping = false
  #wake: () => void = () => undefined

  constructor(options: LaunchOptions, times: Required<LocalLauncherOptions>) {
    this.#options = options
    this.#times = times
  }

  async run(): Promise<'done' | 'interrupted'> {
    const { roles, workingDirectory, signal } = this.#options
    // Also when this process ends in a hurry.
    const killAll = () => {
      for (const role of this.#roles) role.kill()
    }
    const wake = () => this.#wake()
    process.on('exit', killAll)
    signal.addEventListener('abort', wake)
    try {
      for (const plan of roles) this.#start(plan)
      await this.#untilOver()
      if (this.#failures.length > 0) await pause(gatherMs)
      this.#isStopping = true
      for (const timer of this.#timers) clearTimeout(timer)
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

  #start(plan: RolePlan): void {
    const { workingDirectory, onStart, onEvent, onEnd } = this.#options
    const role = new RoleProcess(plan, workingDirectory, (event) => onEvent(plan.name, event))
    const before = this.#roles.findIndex((one) => one.plan === plan)
    if (before === -1) this.#roles.push(role)
    else this.#roles[before] = role
    if (role.pid !== undefined) onStart?.(plan.name, role.pid)
    void role.ended.then((end) => {
      onEnd(plan.name, end)
      this.#noteEnd(role, end)
    })
  }

  #noteEnd(role: RoleProcess, end: RoleEnd): void {
    const isInOrder = end.status === 0 && role.failure === undefined && role.plan.purpose === 'work'
    if (!isInOrder && !this.#isStopping) {
      const failure = { role, end, ...(role.reason === undefined ? {} : { reason: role.reason }) }
      if (!this.#restart(failure)) this.#failures.push(...(isConsequence(failure) ? this.#deathsBefore(role) : []), failure)
    }
    this.#wake()
  }

  /** Starts a service again that died after it had been ready; false where that is not to be. */
  #restart(death: RoleFailure): boolean {
    const { restarts: limit = 0, workingDirectory, signal, onRestart } = this.#options
    const { backOffMs, steadyMs } = this.#times
    const { role, end } = death
    const { plan, readyMs } = role
    const isSteady = readyMs !== undefined && performance.now() - readyMs >= steadyMs
    const before = isSteady ? 0 : (this.#recoveries.get(plan)?.attempt ?? 0)
    const isCrash = end?.signal != null || !decided.includes(end?.status ?? null)
    if (plan.purpose !== 'service' || !isCrash || signal.aborted || before >= limit) return false
    // One that never was ready would not be the next time.
    if (readyMs === undefined && before === 0) return false
    const attempt = before + 1
    const waitMs = Math.min(longestBackOffMs, backOffMs * 2 ** before)
    this.#recoveries.set(plan, { attempt, death })
    onRestart?.(plan.name, { attempt, limit, waitMs, cause: causeOf(death), log: logOf(plan, workingDirectory) })
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      if (!this.#isStopping) this.#start(plan)
    }, waitMs)
    this.#timers.add(timer)
    return true
  }

  /** Deaths of other services that have not come back: what fails for want of them follows from these. */
  #deathsBefore(failed: RoleProcess): RoleFailure[] {
    return [...this.#recoveries.values()].flatMap(({ death }) => {
      const current = this.#roles.find(({ plan }) => plan === death.role.plan)
      const isBack = current !== death.role && current?.isReady === true
      return current === failed || isBack ? [] : [death]
    })
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
    const { readyTimeoutMs, restarts = 0 } = this.#options
    const { silenceMs } = this.#times
    for (const role of this.#roles) {
      if (role.hasEnded) continue
      if (!role.isReady && nowMs - role.startedMs > readyTimeoutMs)
        this.#failures.push({ role, end: undefined, reason: `was not ready within ${readyTimeoutMs / 1000} s` })
      else if (role.reason === undefined && role.lastHeardMs !== undefined && nowMs - role.lastHeardMs > silenceMs) {
        const reason = `gave no sign of life for ${silenceMs / 1000} s`
        if (role.plan.purpose === 'service' && restarts > 0) {
          role.reason = reason
          role.kill()
        } else this.#failures.push({ role, end: undefined, reason })
      }
    }
  }

  /** Ends the roles of one purpose in order, and after a while without asking. */
  async #stop(purpose: 'work' | 'service'): Promise<void> {
    const { graceMs } = this.#times
    const roles = this.#roles.filter(({ plan }) => plan.purpose === purpose)
    await Promise.all(
      roles.map(async (role) => {
        role.stop()
        let deadlineMs = performance.now() + graceMs
        while (!role.hasEnded) {
          await Promise.race([role.ended, pause(50)])
          const nowMs = performance.now()
          // A checkpoint takes as long as its disk does; the sign of life says that it is being written.
          const isSaving = role.state.startsWith('saving') && nowMs - (role.lastHeardMs ?? 0) < graceMs
          if (isSaving) deadlineMs = nowMs + graceMs
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
