import { z } from 'zod'

/** Checkpoints of a trainer; the table of the RL trainer and of sft. */
export const CheckpointTable = z.strictObject({
  output_dir: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Folder of the checkpoints; null is `checkpoints` below the output folder.'),
  interval: z.int().min(1).nullable().default(null).describe('Steps between two checkpoints; null writes one at the end.'),
  weights: z
    .strictObject({
      save_sharded: z.boolean().default(true).describe('Split the weights over several files.'),
      save_format: z
        .enum(['safetensors', 'torch'])
        .default('safetensors')
        .meta({ description: 'File format of the weights.', unavailable: 'Only safetensors files are written.' }),
    })
    .nullable()
    .prefault({})
    .describe('Also write the weights as a Hugging Face folder; null writes none.'),
  skip_gather_master_weights: z.boolean().default(false).meta({
    description: 'Do not collect the weights on one rank for that folder.',
    externalOnly: 'The embedded trainer is one process and holds all weights.',
  }),
  weights_only: z.boolean().default(false).describe('Write the weights and nothing to resume from.'),
  resume_step: z
    .int()
    .min(-1)
    .nullable()
    .default(null)
    .describe('Resume from the checkpoint of that step; -1 is the last, null starts anew.'),
  keep_last: z.int().min(1).nullable().default(null).describe('Keep that many of the newest checkpoints; null keeps all.'),
  keep_interval: z.int().min(1).nullable().default(null).describe('Keep the checkpoints of every n-th step besides.'),
  skip_progress: z.boolean().default(false).describe('When resuming, start counting at step 0.'),
  skip_scheduler: z.boolean().default(false).describe('When resuming, start the schedule anew.'),
  skip_dataloader: z.boolean().default(false).describe('When resuming, start the data anew.'),
  skip_optimizer: z.boolean().default(false).describe('When resuming, start with a fresh optimiser.'),
})
