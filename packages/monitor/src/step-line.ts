import { duration, round } from './text.ts'

type Values = Readonly<Record<string, number>>

interface Column {
  readonly title: string
  /** The first of these that is there is shown. */
  readonly keys: readonly string[]
  readonly show: (value: number, values: Values) => string
}

const fixed = (digits: number) => (value: number) => value.toFixed(digits)
const percent = (value: number) => `${(100 * value).toFixed(1)}%`

const trainerColumns: readonly Column[] = [
  { title: '', keys: ['time/step'], show: (value) => `${value.toFixed(2)}s` },
  { title: 'Loss', keys: ['loss/mean', 'loss'], show: fixed(4) },
  { title: 'Entropy', keys: ['entropy/all/mean'], show: fixed(4) },
  { title: 'Mismatch KL', keys: ['mismatch_kl/all/mean'], show: fixed(4) },
  { title: 'Grad. Norm', keys: ['optim/grad_norm'], show: fixed(4) },
  { title: 'LR', keys: ['optim/lr'], show: (value) => value.toExponential(2) },
  { title: 'Throughput', keys: ['perf/throughput'], show: (value) => `${round(value)} tokens/s` },
  { title: 'MFU', keys: ['perf/mfu'], show: (value) => `${value.toFixed(1)}%` },
  { title: 'Peak Mem.', keys: ['perf/peak_memory'], show: (value) => `${value.toFixed(2)} GiB` },
  { title: 'Max Vio', keys: ['max_vio/mean'], show: fixed(4) },
  { title: 'Routing Conf.', keys: ['routing_confidence/mean'], show: fixed(4) },
]

const orchestratorColumns: readonly Column[] = [
  { title: '', keys: ['time/step'], show: (value) => `${value.toFixed(2)}s` },
  { title: 'Reward', keys: ['reward/all/mean'], show: fixed(4) },
  {
    title: 'Trainable',
    keys: ['progress/trainable'],
    show: (value, values) => {
      const all = values['progress/rollouts'] ?? values['progress/samples']
      return all === undefined ? round(value) : `${round(value)}/${round(all)} (${percent(all > 0 ? value / all : 0)})`
    },
  },
  { title: 'Turns', keys: ['num_turns/all/mean'], show: fixed(2) },
  { title: 'Max Off-Policy', keys: ['lag/max', 'off_policy_level/max', 'dispatcher/off_policy_level_max'], show: round },
  { title: 'Error', keys: ['error/all/mean', 'errored/all/mean'], show: percent },
  { title: 'Truncation', keys: ['is_truncated/all/mean'], show: percent },
]

/** `Step 3 | 1.20s | Reward 0.4120 | …`: prime-rl's line for a step, with the columns whose values are there. */
export function stepLine(step: number, values: Values): string {
  const evaluated = evaluatedNames(values)
  if (evaluated.length > 0) return evaluated.map((name) => evaluationLine(name, step, values)).join('\n')
  const columns = 'reward/all/mean' in values ? orchestratorColumns : trainerColumns
  const line = [`Step ${step}`, ...columns.flatMap((column) => cell(column, values))].join(' | ')
  return [line, ...environmentLines(values)].join('\n')
}

/** A line for each environment of a batch that has several. */
function environmentLines(values: Values): string[] {
  const names = Object.keys(values).flatMap((key) => /^reward\/(.+)\/mean$/.exec(key)?.[1] ?? [])
  const own = names.filter((name) => name !== 'all')
  if (own.length < 2) return []
  return own.map((name) => {
    const columns: readonly Column[] = [
      { title: 'Reward', keys: [`reward/${name}/mean`], show: fixed(4) },
      { title: 'Share', keys: [`batch/${name}`], show: percent },
      { title: 'Turns', keys: [`num_turns/${name}/mean`], show: fixed(2) },
      { title: 'Truncation', keys: [`is_truncated/${name}/mean`], show: percent },
    ]
    return [`  ${name}`, ...columns.flatMap((column) => cell(column, values))].join(' | ')
  })
}

/** Names of the environments that were evaluated in this step. */
export function evaluatedNames(values: Values): string[] {
  return [...new Set(Object.keys(values).flatMap((key) => /^eval\/(.+)\/avg@\d+$/.exec(key)?.[1] ?? []))]
}

/** Mean reward of an evaluated environment: its `avg@k`. */
export function evaluationReward(name: string, values: Values): number | undefined {
  const key = Object.keys(values).find((one) => one.startsWith(`eval/${name}/avg@`))
  return key === undefined ? undefined : values[key]
}

function evaluationLine(name: string, step: number, values: Values): string {
  const at = `eval/${name}`
  const columns: readonly Column[] = [
    { title: 'Policy', keys: [`${at}/policy_version`], show: (value) => `v${round(value)}` },
    { title: '', keys: [`${at}/time`, 'time/eval'], show: (value) => duration(value) },
    { title: 'Reward', keys: Object.keys(values).filter((key) => key.startsWith(`${at}/avg@`)), show: fixed(4) },
    { title: 'Turns', keys: [`${at}/num_turns/mean`], show: fixed(2) },
    { title: 'Error', keys: [`${at}/error/mean`], show: percent },
    { title: 'Truncation', keys: [`${at}/is_truncated/mean`], show: percent },
  ]
  return [`Evaluated ${name} (Step ${step})`, ...columns.flatMap((column) => cell(column, values))].join(' | ')
}

function cell({ title, keys, show }: Column, values: Values): string[] {
  const value = keys.map((key) => values[key]).find((one) => one !== undefined)
  return value === undefined ? [] : [`${title} ${show(value, values)}`.trim()]
}
