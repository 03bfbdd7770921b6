import {
  ExperimentalTable,
  HeartbeatTable,
  LogTable,
  PluginPaths,
  RendererVariants,
  RolloutTransport,
  TokenizerTable,
} from '@trilithon/core'
import { z } from 'zod'
import { AdvantageVariants } from './advantage-table.ts'
import { PolicyTable } from './client-table.ts'
import { AdaptiveConcurrencyTable } from './concurrency-table.ts'
import { EvalTable, TrainTable } from './environments-table.ts'
import { PostBatchFilters, PreBatchFilters } from './filter-table.ts'

export const OrchestratorSchema = z.strictObject({
  plugins: PluginPaths,
  training_mode: z
    .enum(['rl', 'opd', 'sft'])
    .default('rl')
    .describe('"rl" by reward, "opd" by the log-probabilities of a teacher on the own samples, "sft" on samples of a teacher.'),
  student: PolicyTable.prefault({}).describe('The policy that is trained.'),
  teacher: PolicyTable.nullable()
    .default(null)
    .meta({ description: 'A fixed model to learn from; null has none.', unavailable: 'Teachers are not built yet.' }),
  train: TrainTable.prefault({}).describe('What is trained on.'),
  tokenizer: TokenizerTable.prefault({}).describe('Tokeniser of the policy.'),
  renderer: RendererVariants.nullable()
    .prefault({ name: 'auto' })
    .describe('Turns messages into token ids; null sends messages to the chat route instead.'),
  pool_size: z.int().min(1).nullable().default(null).meta({
    description: 'Renderers that work side by side; null follows from the machine.',
    unavailable: 'Renderers work in the processes of the environments, one in each.',
  }),
  optim: z
    .strictObject({ lr: z.number().min(0).default(1e-4).describe('Learning rate.') })
    .prefault({})
    .meta({
      description: 'Optimiser settings of this run, for a trainer that serves several.',
      unavailable: 'One trainer serves one run.',
    }),
  eval: EvalTable.nullable().default(null).describe('Evaluations during the run; null makes none.'),
  advantage: AdvantageVariants.nullable()
    .prefault({ type: 'default' })
    .describe('How rewards of a group become advantages; null takes the bare reward.'),
  pre_batch_filters: PreBatchFilters,
  post_batch_filters: PostBatchFilters,
  log: LogTable.prefault({}).describe('Log lines.'),
  collect_inference_metrics: z.boolean().default(true).describe('Read the metrics of the engines.'),
  inference_metrics_roles: z
    .array(z.enum(['prefill', 'decode']))
    .nullable()
    .default(null)
    .meta({
      description: 'Role of each engine, in the order of their URLs; null where prefill and decode are not split.',
      unavailable: 'Prefill and decode are not split yet.',
    }),
  ckpt: z
    .strictObject({
      interval: z.int().min(1).nullable().default(null).describe('Steps between two checkpoints; null writes one at the end.'),
      resume_step: z.int().min(-1).nullable().default(null).describe('Resume from that step; -1 is the last, null starts anew.'),
      wait_for_weights_timeout: z
        .int()
        .min(1)
        .nullable()
        .default(null)
        .describe('Seconds that the trainer may take to publish the weights of that step; null takes `wait_for_ready_timeout`.'),
      keep_last: z.int().min(1).nullable().default(null).describe('Keep that many of the newest checkpoints; null keeps all.'),
      keep_interval: z.int().min(1).nullable().default(null).describe('Keep the checkpoints of every n-th step besides.'),
      skip_progress: z.boolean().default(false).meta({
        description: 'When resuming, start counting at step 0.',
        unavailable: 'Engines know version 0 as the folder of the model.',
      }),
    })
    .nullable()
    .default(null)
    .describe('Checkpoints of the progress; null writes none.'),
  weight_broadcast: z
    .discriminatedUnion('type', [z.strictObject({ type: z.literal('filesystem').describe('Files below the output folder.') })])
    .prefault({ type: 'filesystem' })
    .describe('How a new version of the weights reaches the engines; the same in all roles.'),
  rollout_transport: RolloutTransport,
  output_dir: z.string().min(1).default('outputs/run_default').describe('Folder of what the orchestrator writes, inside that of the run.'),
  tasks_per_minute: z.int().min(1).nullable().default(null).describe('Episodes started per minute at most; null has no limit.'),
  batch_size: z.int().min(1).nullable().default(null).describe('Rollouts per batch; 128 where `token_batch_size` is null too.'),
  token_batch_size: z.int().min(1).nullable().default(null).describe('Tokens per batch, instead of a number of rollouts.'),
  oversampling_factor: z.number().gt(0).nullable().default(null).describe('Episodes in flight as a multiple of `batch_size`.'),
  max_inflight_rollouts: z.int().min(1).nullable().default(null).describe('Episodes in flight; null follows from the batch.'),
  adaptive_concurrency: AdaptiveConcurrencyTable.nullable()
    .default(null)
    .describe(
      'Finds out while the run goes on how many episodes below `max_inflight_rollouts` keep the trainer busy and fit into the engines; null always has that many.',
    ),
  group_size: z.int().min(1).default(1).describe('Episodes of one task, compared with each other.'),
  seq_len: z.int().min(1).default(2048).describe('Tokens of the longest sequence, prompt and completions together.'),
  num_train_workers: z.int().min(1).default(1).describe('Data ranks of the trainer; set from the deployment.'),
  max_steps: z.int().min(1).nullable().default(null).describe('Batches of the run; null has no end.'),
  max_off_policy_steps: z.int().min(0).default(8).describe('Steps that the oldest token of a sample may lag behind the version it trains.'),
  max_async_level: z
    .int()
    .min(0)
    .default(1)
    .describe('Batches that may be on their way before the weights of the first are back; 0 waits for every version.'),
  stall_timeout_seconds: z
    .number()
    .gt(0)
    .nullable()
    .default(1800)
    .describe(
      'Seconds after which a run ends whose episodes in flight show no sign of life: none begins, ends or comes to the end of a turn, and no engine computes; null waits for ever.',
    ),
  bench: z.boolean().default(false).describe('Measure: four steps, no evaluations.'),
  heartbeat: HeartbeatTable,
  env_install_prerelease: z.boolean().default(false).meta({
    description: 'Allow prereleases when environments are installed.',
    unavailable: 'Environments are not installed on demand yet.',
  }),
  experimental: ExperimentalTable,
})
export type OrchestratorConfiguration = z.output<typeof OrchestratorSchema>
