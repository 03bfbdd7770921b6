import { ExperimentalTable, NumericsProfile, PluginPaths, RendererVariants, TokenizerTable } from '@trilithon/core'
import { z } from 'zod'
import { CheckpointTable } from './checkpoint-table.ts'
import { TrainerModelTable } from './model-table.ts'
import { OptimTable, SchedulerTable } from './optim-table.ts'
import { TrainerLogTable, trainerRunKeys } from './run-keys.ts'
import { SftDataTable, SftTextTable } from './sft-data-table.ts'

export const SftSchema = z.strictObject({
  plugins: PluginPaths,
  numerics_profile: NumericsProfile,
  model: TrainerModelTable.prefault({}).describe('The model that is trained.'),
  tokenizer: TokenizerTable.prefault({}).describe('Its tokeniser.'),
  renderer: RendererVariants.nullable().default(null).describe('Renderer that turns messages into token ids; null uses the chat template.'),
  data: SftDataTable.prefault({ type: 'sft' }).describe('What is trained on.'),
  val: z
    .strictObject({
      interval: z.int().min(1).default(50).describe('Steps between two validations.'),
      eval_on_start: z.boolean().default(false).describe('Also validate before the first step.'),
      data: z.discriminatedUnion('type', [SftTextTable]).prefault({ type: 'sft' }).describe('What is validated on.'),
    })
    .nullable()
    .default(null)
    .describe('Loss on held-out data; null measures none.'),
  optim: OptimTable,
  scheduler: SchedulerTable,
  ckpt: CheckpointTable.nullable().default(null).describe('Checkpoints; null writes none.'),
  log: TrainerLogTable.prefault({}).describe('Log lines.'),
  ...trainerRunKeys,
  clean_output_dir: z.boolean().default(false).describe('Delete the output folder before the run.'),
  loss_impl: z
    .enum(['torch', 'liger', 'liger_fused', 'quack_fused'])
    .default('torch')
    .meta({ description: 'Implementation of the cross entropy.', externalOnly: 'The embedded trainer has one cross entropy.' }),
  deployment: z
    .discriminatedUnion('type', [
      z.strictObject({
        type: z.literal('single_node').describe('One machine.'),
        gpus_per_node: z.int().min(1).default(8).describe('GPUs of a node.'),
        num_gpus: z.int().min(1).default(1).meta({
          description: 'GPUs, or processes where there are none, that train.',
          unavailable: 'One process trains.',
        }),
      }),
    ])
    .prefault({ type: 'single_node' })
    .describe('Where the ranks run.'),
  dry_run: z.boolean().default(false).describe('Check, write the resolved configuration, and end.'),
  experimental: ExperimentalTable,
})
export type SftConfiguration = z.output<typeof SftSchema>
