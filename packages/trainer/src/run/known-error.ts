import { TrilithonError } from '@trilithon/core'

/** An error with a code: anything else that was thrown is a fault of ours. */
export function knownError(error: unknown): TrilithonError {
  if (TrilithonError.is(error)) return error
  return new TrilithonError('INVARIANT_BROKEN', error instanceof Error ? error.message : String(error), {
    hint: 'This is a fault of Trilithon; report it with the output of --verbose.',
    cause: error,
  })
}
