import { TrilithonError } from '@trilithon/core'

/** What is wrong with an environment, named by the id of the configuration. */
export function environmentInvalid(id: string, reason: string, hint: string, cause?: unknown): TrilithonError {
  return new TrilithonError('ENVIRONMENT_INVALID', `the environment ${id}: ${reason}`, { path: 'env.id', hint, cause })
}
