import { combineProblems, TrilithonError } from '@trilithon/core'
import type { UnavailableKey } from '@trilithon/runtime'

/** What a real start lacks of all that the configuration asks for. */
export function startProblems(unavailable: readonly UnavailableKey[]): TrilithonError[] {
  return unavailable.map(
    ({ code, path, value, source, reason, hint }) =>
      new TrilithonError(code, `\`${path}\` = ${JSON.stringify(value)}: ${reason}`, { path, source, hint }),
  )
}

/** A real start needs everything that the configuration asks for; all that is missing is said at once. */
export function refuseStart(unavailable: readonly UnavailableKey[]): void {
  const problems = startProblems(unavailable)
  if (problems.length > 0) throw combineProblems(problems)
}
