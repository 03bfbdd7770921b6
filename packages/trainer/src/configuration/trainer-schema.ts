import { NumericsProfile, PluginPaths, RolloutTransport, TokenizerTable } from '@trilithon/core'
import { z } from 'zod'
import { CheckpointTable } from './checkpoint-table.ts'
import { LossTable } from './loss-table.ts'
import { TrainerModelTable } from './model-table.ts'
import { OptimTable, SchedulerTable } from './optim-table.ts'
import { TrainerLogTable, trainerRunKeys } from './run-keys.ts'

export const TrainerSchema = z.strictObject({
  plugins: PluginPaths,
  numerics_profile: NumericsProfile,
  model: TrainerModelTable.prefault({}).describe('The model that is trained.'),
  tokenizer: TokenizerTable.prefault({}).describe('Its tokeniser.'),
  data: z
    .strictObject({
      fake: z
        .strictObject({
          batch_size: z.int().min(1).default(2).describe('Sequences per step.'),
          generate_samples: z.boolean().default(false).describe('Vary the lengths of the sequences.'),
        })
        .nullable()
        .default(null)
        .describe('Made-up batches, for measurements; null trains on those of the orchestrator.'),
    })
    .prefault({})
    .describe('Where batches come from.'),
  loss: LossTable,
  optim: OptimTable,
  scheduler: SchedulerTable,
  ckpt: CheckpointTable.nullable().default(null).describe('Checkpoints; null writes none.'),
  weight_broadcast: z
    .discriminatedUnion('type', [
      z.strictObject({
        type: z.literal('filesystem').describe('Files below the output folder, or in memory-backed files where they fit.'),
        save_sharded: z.boolean().default(true).meta({
          description: 'Split the weights over several files.',
          externalOnly: 'A version is published as one file, in the layout that engines map.',
        }),
        save_format: z.enum(['safetensors', 'torch']).default('safetensors').meta({
          description: 'File format of the weights.',
          unavailable: 'A version is published in the layout that engines map.',
        }),
      }),
    ])
    .prefault({ type: 'filesystem' })
    .describe('How a new version of the weights reaches the engines; the same in all roles.'),
  rollout_transport: RolloutTransport,
  log: TrainerLogTable.prefault({}).describe('Log lines.'),
  ...trainerRunKeys,
  clean_output_dir: z
    .boolean()
    .default(false)
    .describe('Delete the output folder before the run of a trainer that is started by itself; under `rl` the key at the top does.'),
  max_off_policy_steps: z
    .int()
    .min(0)
    .default(8)
    .describe(
      'Steps that the oldest token of a sample may lag behind the version it trains; older samples are refused. Under `rl` that of the orchestrator.',
    ),
  max_concurrent_runs: z
    .int()
    .min(1)
    .default(1)
    .meta({ description: 'Runs of different orchestrators trained side by side.', unavailable: 'One trainer serves one run.' }),
  enable_token_export: z
    .boolean()
    .default(false)
    .meta({ description: 'Write what the trainer knows of every token.', unavailable: 'Token export is not built yet.' }),
})
export type TrainerConfiguration = z.output<typeof TrainerSchema>
