import type { EvalResult } from '@trilithon/orchestrator'

/** What an evaluation says of one environment. */
export interface EnvironmentReport {
  readonly name: string
  /** `avg@k`: mean reward of the episodes that ended without an error; null where none did. */
  readonly reward: number | null
  /** Episodes per task, the `k`. */
  readonly group_size: number
  /** Of the mean over tasks, each task counting once; null below two tasks. */
  readonly standard_error: number | null
  readonly tasks: number
  readonly episodes: number
  readonly errors: number
  /** Under prime-rl's names. */
  readonly metrics: Readonly<Record<string, number>>
}

/** The mean and how sure it is, from the lines of the episodes. */
export function environmentReport({ environment: name, values, records }: EvalResult): EnvironmentReport {
  const groups = new Map<unknown, number[]>()
  let errors = 0
  for (const { group_id: group, reward, error } of records) {
    const rewards = groups.get(group) ?? []
    groups.set(group, rewards)
    if (error === null && typeof reward === 'number') rewards.push(reward)
    else errors++
  }
  const means = [...groups.values()].filter((rewards) => rewards.length > 0).map(mean)
  const key = Object.keys(values).find((one) => one.startsWith(`eval/${name}/avg@`))
  const size = Math.max(1, ...[...groups.values()].map((rewards) => rewards.length))
  return {
    name,
    reward: key === undefined ? null : (values[key] ?? null),
    group_size: key === undefined ? size : Number(key.slice(key.lastIndexOf('@') + 1)),
    standard_error: means.length < 2 ? null : Math.sqrt(variance(means) / means.length),
    tasks: groups.size,
    episodes: records.length,
    errors,
    metrics: values,
  }
}

/** `reverse-text  avg@1 0.4120 ± 0.0113  1024 tasks, 0 errors`. */
export function reportLine({ name, reward, group_size: k, standard_error: error, tasks, errors, metrics }: EnvironmentReport): string {
  const result =
    reward === null ? 'no episode ended without an error' : `avg@${k} ${reward.toFixed(4)}${error === null ? '' : ` ± ${error.toFixed(4)}`}`
  const more = [
    `${tasks} task${tasks === 1 ? '' : 's'}`,
    `${errors} error${errors === 1 ? '' : 's'}`,
    ...named(metrics[`eval/${name}/completion_len/mean`], (value) => `${value.toFixed(1)} tokens an answer`),
    ...named(metrics[`eval/${name}/is_truncated/mean`], (value) => `${(100 * value).toFixed(1)} % truncated`),
    ...named(metrics[`eval/${name}/time`], (value) => `${value.toFixed(1)} s`),
  ]
  return `${name}  ${result}  (${more.join(', ')})`
}

function named(value: number | undefined, text: (value: number) => string): string[] {
  return value === undefined ? [] : [text(value)]
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Of the population that the values are a sample of. */
function variance(values: readonly number[]): number {
  const middle = mean(values)
  return values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1)
}
