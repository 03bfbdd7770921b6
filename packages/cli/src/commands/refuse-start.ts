import { combineProblems, TrilithonError } from '@trilithon/core'
import type { UnavailableKey } from '@trilithon/runtime'

/** A real start needs everything that the configuration asks for; all that is missing is said at once. */
export function refuseStart(unavailable: readonly UnavailableKey[]): void {
  const problems = unavailable.map(
    ({ code, path, value, source, reason, hint }) =>
      new TrilithonError(code, `\`${path}\` = ${JSON.stringify(value)}: ${reason}`, { path, source, hint }),
  )
  if (problems.length > 0) throw combineProblems(problems)
}
