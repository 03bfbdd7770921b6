import type { TrilithonError } from '@trilithon/core'
import { environmentFileProblem } from '@trilithon/environments/configuration'
import type { OrchestratorConfiguration } from './orchestrator-schema.ts'

/** What is wrong with the files of local environments, as far as it can be known without a worker. A server elsewhere has files of its own. */
export function environmentProblems(
  config: Pick<OrchestratorConfiguration, 'train' | 'eval'>,
  workingDirectory: string,
  prefix = '',
): TrilithonError[] {
  const tables = [
    ...config.train.env.map((table, index) => ({ ...table, at: `train.env.${index}.id` })),
    ...(config.eval?.env ?? []).map((table, index) => ({ ...table, at: `eval.env.${index}.id` })),
  ]
  return tables.flatMap(({ id, address, at }) => {
    const problem = address === null ? environmentFileProblem(id, workingDirectory, prefix + at) : undefined
    return problem === undefined ? [] : [problem]
  })
}
