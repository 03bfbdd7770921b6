import { z } from 'zod'

const advTau = z.number().min(0).default(1).describe('Factor of the advantage.')
const klTau = z.number().min(0).default(1e-3).describe('Factor of the squared log-ratio between trainer and sampler.')

export const LossTable = z
  .discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('default').describe('Policy gradient with masks on the change of probability.'),
      dppo_mask_low: z
        .number()
        .min(0)
        .default(0.2)
        .describe('Tokens with a negative advantage are masked where the probability fell by more.'),
      dppo_mask_high: z
        .number()
        .min(0)
        .default(0.2)
        .describe('Tokens with a positive advantage are masked where the probability rose by more.'),
      adv_tau: advTau,
      kl_tau: klTau,
    }),
    z.strictObject({
      type: z.literal('ipo').describe('Policy gradient masked where the probability moved far in either direction.'),
      ipo_threshold: z.number().min(0).default(0.1).describe('Largest change of probability that is still trained.'),
      adv_tau: advTau,
      kl_tau: klTau,
    }),
    z.strictObject({
      type: z.literal('custom').describe('A function of yours.'),
      import_path: z.string().min(1).describe('Module and export, as `./loss.mjs#myLoss`.'),
      kwargs: z.record(z.string(), z.json()).default({}).describe('Arguments of the function.'),
    }),
  ])
  .prefault({ type: 'default' })
  .describe('The loss of RL.')
