import type { ConfigurationMove } from '@trilithon/core'

const toTrain = (key: string): ConfigurationMove => ({
  from: key,
  to: `train.${key}`,
  keep: 'to',
  notice: `orchestrator.${key} is now orchestrator.train.${key}.`,
})
const maxTokens = (table: string): ConfigurationMove => ({
  from: `${table}.max_tokens`,
  to: `${table}.max_completion_tokens`,
  notice: 'max_tokens is now max_completion_tokens.',
})
const groupSize = (table: string): ConfigurationMove => ({ from: `${table}rollouts_per_example`, to: `${table}group_size` })
/** A model's keys written beside the table `model` instead of in it. */
const bareModelKey = (key: string): ConfigurationMove => ({ from: `student.${key}`, to: `student.model.${key}`, keep: 'from' })

/** Old spellings, in the order in which they are applied. */
export const orchestratorMoves: readonly ConfigurationMove[] = [
  { from: 'client', to: 'student.client', keep: 'from' },
  { from: 'model', to: 'student', keep: 'from' },
  { from: 'teacher_model', to: 'teacher' },
  ...['name', 'trust_remote_code', 'vlm', 'lora'].map(bareModelKey),
  toTrain('env'),
  toTrain('sampling'),
  ...['', 'train.env.*.', 'eval.', 'eval.env.*.'].map(groupSize),
  ...['train.sampling', 'train.env.*.sampling', 'eval.sampling', 'eval.env.*.sampling'].map(maxTokens),
  ...['train.env.*', 'eval.env.*'].map((table) => ({ from: `${table}.timeout_seconds`, to: `${table}.timeout` })),
]
