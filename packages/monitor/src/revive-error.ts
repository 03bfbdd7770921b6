import { type ErrorCode, errorCodes, TrilithonError } from '@trilithon/core'
import type { PlainError } from './role-event.ts'

/** An error of another thread or process, from its JSON: what decides the exit status and what is shown stay as they were. */
export function reviveError(plain: unknown, stack?: string): TrilithonError {
  const { code = '', message = '', problems = [], ...rest } = plain as Partial<PlainError>
  const known = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : 'INVARIANT_BROKEN'
  const error = new TrilithonError(known, message, { ...rest, problems: problems.map((problem) => reviveError(problem)) })
  if (stack !== undefined) error.stack = stack
  return error
}
