import { type ErrorCode, errorCodes, TrilithonError } from '@trilithon/core'

interface PlainError {
  readonly code?: string
  readonly message?: string
  readonly path?: string
  readonly source?: TrilithonError['source']
  readonly hint?: string
  readonly details?: Readonly<Record<string, unknown>>
  readonly problems?: readonly unknown[]
}

/** An error of another thread, from its JSON: what decides the exit status and what is shown stay as they were. */
export function reviveError(plain: unknown, stack?: string): TrilithonError {
  const { code = '', message = '', problems = [], ...rest } = plain as PlainError
  const known = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : 'INVARIANT_BROKEN'
  const error = new TrilithonError(known, message, { ...rest, problems: problems.map((problem) => reviveError(problem)) })
  if (stack !== undefined) error.stack = stack
  return error
}
