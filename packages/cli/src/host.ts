/** What the command line touches of its process. */
export interface CommandLineHost {
  readonly workingDirectory: string
  readonly environment: NodeJS.ProcessEnv
  readonly stdout: Output
  readonly stderr: Output
}

export interface Output {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
}

/** Colours on a terminal only, and not where the user has said no. */
export function usesColors(output: Output, environment: NodeJS.ProcessEnv): boolean {
  return output.isTTY === true && (environment.NO_COLOR ?? '') === '' && environment.TERM !== 'dumb'
}
