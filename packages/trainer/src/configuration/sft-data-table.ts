import { z } from 'zod'

const base = {
  batch_size: z.int().min(1).default(128).describe('Packed rows per optimiser step.'),
  seq_len: z.int().min(1).default(128).describe('Tokens of a packed row.'),
  pack_function: z.enum(['cat', 'stack']).default('cat').meta({
    description: '"cat" joins documents to one row per micro-batch, "stack" sorts them into rows of like lengths.',
    unavailable: 'Documents are packed by "cat" only.',
  }),
  micro_batch_size: z.int().min(1).default(1).describe('Rows per forward pass.'),
}

/** Text from files or a data set. */
export const SftTextTable = z.strictObject({
  type: z.literal('sft').describe('Rows with `messages`, or with `prompt` and `completion`.'),
  ...base,
  name: z.string().min(1).default('PrimeIntellect/Reverse-Text-SFT').describe('File, folder, or name on Hugging Face.'),
  subsets: z
    .array(z.string())
    .nullable()
    .default(null)
    .describe('Subsets that are mixed, folders below that of the data; null takes it itself.'),
  splits: z.array(z.string()).nullable().default(null).describe('Split of each subset; null takes "train".'),
  probabilities: z.array(z.number().min(0).max(1)).nullable().default(null).describe('Share of each subset; null follows their sizes.'),
  stopping_strategy: z
    .enum(['first_exhausted', 'all_exhausted'])
    .default('all_exhausted')
    .describe('A pass over mixed subsets ends with the first or with the last of them.'),
  shuffle: z.boolean().default(true).describe('Shuffle the rows of every pass.'),
  seed: z.int().default(0).describe('Seed of the shuffle.'),
  loss_mask: z
    .strictObject({
      system: z.boolean().default(false).describe('Train on system messages.'),
      user: z.boolean().default(false).describe('Train on user messages.'),
      assistant: z.boolean().default(true).describe('Train on assistant messages.'),
      tool: z.boolean().default(false).describe('Train on tool messages.'),
    })
    .prefault({})
    .describe('Roles whose tokens are trained.'),
})

export const SftDataTable = z.discriminatedUnion('type', [
  SftTextTable,
  z.strictObject({
    type: z.literal('fake').describe('Made-up tokens, for measurements.'),
    ...base,
    length: z.enum(['fixed', 'variable']).default('fixed').describe('Documents of one length or of several.'),
    input_ids: z.enum(['increasing', 'random']).default('increasing').describe('Token ids that count up, or random ones.'),
  }),
])
