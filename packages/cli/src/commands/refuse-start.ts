import { combineProblems, TrilithonError } from '@trilithon/core'
import type { UnavailableKey } from '@trilithon/runtime'

/** A real start needs everything that the configuration asks for; all that is missing is said at once. */
export function refuseStart(
  unavailable: readonly UnavailableKey[],
  /** Of the roles that are not built; undefined where all are. */
  sentence: string | undefined,
): void {
  const roles =
    sentence === undefined
      ? []
      : [
          new TrilithonError('FEATURE_UNAVAILABLE', sentence, {
            hint: 'Add --dry-run to see the resolved configuration and what else it needs.',
          }),
        ]
  // Without a role there is nothing that a model could be missing for.
  const needed = sentence === undefined ? unavailable : unavailable.filter(({ code }) => code !== 'MODEL_NOT_FOUND')
  const problems = [
    ...roles,
    ...needed.map(
      ({ code, path, value, source, reason, hint }) =>
        new TrilithonError(code, `\`${path}\` = ${JSON.stringify(value)}: ${reason}`, { path, source, hint }),
    ),
  ]
  if (problems.length > 0) throw combineProblems(problems)
}
