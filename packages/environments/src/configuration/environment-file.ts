import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { isEnvironmentPath } from './environment-name.ts'

/** What is wrong with the path of an environment, as far as it can be known without importing it; undefined for a good one and for a package. */
export function environmentFileProblem(id: string, workingDirectory: string, path = 'env.id'): TrilithonError | undefined {
  if (!isEnvironmentPath(id)) return undefined
  const file = resolve(workingDirectory, id)
  const refuse = (reason: string, hint: string) =>
    new TrilithonError('ENVIRONMENT_INVALID', `the environment ${id}: ${reason}`, { path, hint })
  if (/\.[cm]?ts$/.test(file)) return refuse('Node runs no TypeScript', 'Compile it, and name the .js or .mjs file.')
  if (!existsSync(file)) return refuse(`there is no file ${file}`, 'Paths are relative to the working directory.')
  return undefined
}
