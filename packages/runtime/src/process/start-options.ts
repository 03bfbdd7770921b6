import type { ViewOutput } from '@trilithon/monitor'
import type { CommandLine } from './rl/plan-roles.ts'

/** What starting a role needs beside its composition. */
export interface StartOptions {
  readonly environment: NodeJS.ProcessEnv
  /** Where the run is shown. */
  readonly output: ViewOutput
  /** What starts another process like this one, for roles that are several; the name of a root and its configuration are added. */
  readonly commandLine?: CommandLine
  /** Of log lines on standard error. */
  readonly colors: boolean
}
