import type { RoleEvent } from '@trilithon/monitor'

/** A role as a process, before it is started. */
export interface RolePlan {
  /** `trainer`, `orchestrator`, `inference`, or `inference-1` and so on where there are several engines. */
  readonly name: string
  /** The run is over when all that `work` have ended in order; a `service` runs until then and is ended last. */
  readonly purpose: 'work' | 'service'
  /** Program and arguments. */
  readonly command: readonly [program: string, ...words: string[]]
  readonly environment: NodeJS.ProcessEnv
  /** Absolute path of the file that takes what it writes. */
  readonly log: string
}

/** How a role ended. */
export interface RoleEnd {
  readonly status: number | null
  readonly signal: NodeJS.Signals | null
}

/** A service that died and is started again. */
export interface RoleRestart {
  /** Which one this is, of how many in a row. */
  readonly attempt: number
  readonly limit: number
  readonly waitMs: number
  /** What became of it, as `was ended by SIGKILL`, with its last words. */
  readonly cause: string
  /** Its log, relative to the working directory. */
  readonly log: string
}

export interface LaunchOptions {
  readonly roles: readonly RolePlan[]
  readonly workingDirectory: string
  /** Ends all roles in order. */
  readonly signal: AbortSignal
  readonly onStart?: (name: string, pid: number) => void
  readonly onEvent: (name: string, event: RoleEvent) => void
  readonly onEnd: (name: string, end: RoleEnd) => void
  /** Milliseconds that a role may take to be ready. */
  readonly readyTimeoutMs: number
  /** How often in a row each service is started again that died after it had been ready; 0, the default, ends the run with it. */
  readonly restarts?: number
  /** Told before each time that one is. */
  readonly onRestart?: (name: string, restart: RoleRestart) => void
}

/**
 * Runs the roles of a run. Resolves when all of them have ended: `interrupted` by the signal, else `done`. Rejects with `ROLE_ENDED` when one ended that
 * should not have, and was not started again; then the others have been ended too. No process is left in any case.
 */
export interface Launcher {
  launch(options: LaunchOptions): Promise<'done' | 'interrupted'>
}
