import { z } from 'zod'

const enforce = (value: boolean) => z.boolean().default(value).describe('Drop what the filter finds; false only counts it.')

/** Finds rollouts that should not be trained on. */
const FilterVariants = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('gibberish').describe('Rare tokens that the policy itself finds unlikely.'),
    enforce: enforce(false),
    token_id_threshold: z.int().min(0).default(100_000).describe('Token ids above it count as rare.'),
    logprob_offset: z.number().default(2).describe('Nats below that of a uniform choice at which a token counts as unlikely.'),
  }),
  z.strictObject({
    type: z.literal('repetition').describe('Long runs of tokens that are all but certain.'),
    enforce: enforce(false),
    window: z.int().min(1).default(3000).describe('Tokens of a run.'),
    prob_threshold: z.number().gt(0).max(1).default(0.99).describe('Probability from which a token counts as certain.'),
  }),
  z.strictObject({
    type: z.literal('zero_advantage').describe('Groups without any difference between their rewards.'),
    enforce: enforce(true),
  }),
])

const counting = [
  { type: 'gibberish', enforce: false },
  { type: 'repetition', enforce: false },
] as const

export type FilterTable = z.output<typeof FilterVariants>

/** A list given replaces the default list; a type may stand in it once. */
export const PreBatchFilters = z
  .array(FilterVariants)
  .prefault([...counting, { type: 'zero_advantage', enforce: false }])
  .describe('Filters on groups before they count for a batch.')

export const PostBatchFilters = z
  .array(FilterVariants)
  .prefault([...counting, { type: 'zero_advantage', enforce: true }])
  .describe('Filters on rollouts of a full batch.')
