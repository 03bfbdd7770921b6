import { TrilithonError } from '@trilithon/core'
import { renderCauses, renderError } from '@trilithon/runtime'
import { type CommandLineHost, usesColors } from './host.ts'

/** Writes an error once, for a person to standard error or with `json` to standard output, and gives the exit status that belongs to it. */
export function reportFailure(
  error: unknown,
  host: CommandLineHost,
  options: { readonly json: boolean; readonly verbose: boolean },
): number {
  const known = knownError(error)
  if (options.json) host.stdout.write(`${JSON.stringify({ error: known.toJSON() })}\n`)
  else host.stderr.write(renderError(known, { colors: usesColors(host.stderr, host.environment) }))
  if (options.verbose) host.stderr.write(renderCauses(known))
  return known.exitStatus
}

/** An error with a code: what has none is a fault of ours. */
export function knownError(error: unknown): TrilithonError {
  if (TrilithonError.is(error)) return error
  return new TrilithonError('INVARIANT_BROKEN', error instanceof Error ? error.message : String(error), {
    hint: 'This is a fault of Trilithon; report it with the output of --verbose.',
    cause: error,
  })
}
