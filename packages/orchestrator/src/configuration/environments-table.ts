import { EnvironmentTable, EnvironmentWorkers } from '@trilithon/environments/configuration'
import { z } from 'zod'
import { AdvantageVariants } from './advantage-table.ts'

const extraBody = z.record(z.string(), z.json()).default({}).describe('Further fields of the body of a request, as they are.')
const maxTokens = z.int().min(1).nullable().default(null).describe('Tokens sampled per request; null leaves it to the sequence length.')

/** Sampling while training. Greedy sampling is refused: it explores nothing, and its log-probabilities say nothing. */
export const TrainSamplingTable = z.strictObject({
  temperature: z.number().min(0.001).default(1).describe('Divides the logits; at least 0.001.'),
  max_completion_tokens: maxTokens,
  extra_body: extraBody,
})

export const EvalSamplingTable = z.strictObject({
  temperature: z.number().min(0).nullable().default(null).describe('Divides the logits; 0 is greedy, null the default of the engine.'),
  top_p: z.number().gt(0).max(1).nullable().default(null).describe('Keep the likeliest tokens up to that mass; null keeps all.'),
  top_k: z.int().min(-1).nullable().default(null).describe('Keep that many of the likeliest tokens; -1 or null keeps all.'),
  min_p: z
    .number()
    .min(0)
    .max(1)
    .nullable()
    .default(null)
    .describe('Keep tokens at least that likely, relative to the likeliest; null keeps all.'),
  max_completion_tokens: maxTokens,
  reasoning_effort: z
    .enum(['minimal', 'low', 'medium', 'high'])
    .nullable()
    .default(null)
    .meta({ description: 'Asked of models that think; null leaves it to them.', unavailable: 'No renderer has levels of effort yet.' }),
  extra_body: extraBody,
})

const groupSize = z.int().min(1).default(1)
const examples = z.int().min(-1).default(-1)
const evalInterval = z.int().min(1).default(100).describe('Steps between two evaluations.')

const TrainEnvironmentTable = EnvironmentTable.extend({
  sampling: TrainSamplingTable.prefault({}).describe('Sampling; keys left out follow `train.sampling`.'),
  group_size: groupSize.describe('Episodes per task; follows `orchestrator.group_size`.'),
  advantage: AdvantageVariants.nullable()
    .default(null)
    .describe('Advantage; follows `orchestrator.advantage` where left out, null is the bare reward.'),
})

const EvalEnvironmentTable = EnvironmentTable.extend({
  sampling: EvalSamplingTable.prefault({}).describe('Sampling; keys left out follow `eval.sampling`.'),
  num_examples: examples.describe('Tasks per evaluation, -1 for all; follows `eval.num_examples`.'),
  group_size: groupSize.describe('Episodes per task; follows `eval.group_size`.'),
  interval: evalInterval.describe('Steps between two evaluations; follows `eval.interval`.'),
})

const retries = z.int().min(0).default(3).describe('How often a failed episode is tried again.')

export const TrainTable = z.strictObject({
  env: z.array(TrainEnvironmentTable).min(1).prefault([{}]).describe('Environments that are trained on.'),
  sampling: TrainSamplingTable.prefault({}).describe('Sampling of all of them.'),
  num_workers: EnvironmentWorkers.describe('Worker processes per environment; "auto" follows from the episodes in flight.'),
  max_retries: retries,
})

export const EvalTable = z.strictObject({
  env: z.array(EvalEnvironmentTable).min(1).prefault([{}]).describe('Environments that are evaluated.'),
  sampling: EvalSamplingTable.prefault({}).describe('Sampling of all of them.'),
  num_examples: examples.describe('Tasks per evaluation; -1 takes all.'),
  group_size: groupSize.describe('Episodes per task.'),
  num_workers: EnvironmentWorkers.describe('Worker processes per environment; "auto" follows from the number of episodes.'),
  max_retries: retries,
  interval: evalInterval,
  skip_first_step: z.boolean().default(false).describe('Do not evaluate before the first step.'),
})
