import { z } from 'zod'

/** How rewards of a group become advantages. */
export const AdvantageVariants = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('default').describe('Reward minus the mean of the group.'),
    length_penalty: z
      .strictObject({
        coef: z.number().min(0).default(0.25).describe('Weight of the penalty.'),
        gate_by_correctness: z.boolean().default(false).describe('Only penalise episodes that were right.'),
      })
      .nullable()
      .default(null)
      .describe('Prefer short answers; null does not.'),
    length_weighted_baseline: z.boolean().default(false).describe('Weigh the mean of the group by the lengths of its episodes.'),
    normalize_by_deviation: z
      .boolean()
      .default(false)
      .describe('Also divide by the standard deviation of the rewards of the group, so that every group weighs the same.'),
  }),
  z.strictObject({
    type: z.literal('custom').describe('A function of yours.'),
    import_path: z.string().min(1).describe('Module and export, as `./advantage.mjs#myAdvantage`.'),
    kwargs: z.record(z.string(), z.json()).default({}).describe('Arguments of the function.'),
  }),
])
export type AdvantageTable = z.output<typeof AdvantageVariants>
