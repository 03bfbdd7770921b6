import { z } from 'zod'

const base = {
  lr: z.number().min(0).default(1e-6).describe('Learning rate.'),
  weight_decay: z.number().min(0).default(0.01).describe('Decoupled weight decay per step, times the learning rate.'),
  max_norm: z.number().gt(0).nullable().default(1).describe('Gradients with a larger norm are scaled down to it; null leaves them.'),
}
const beta = (value: number, meaning: string) => z.number().min(0).lt(1).default(value).describe(meaning)

export const OptimTable = z
  .discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('adamw').describe('Adam with decoupled weight decay.'),
      ...base,
      betas1: beta(0.9, 'Decay of the mean of gradients.'),
      betas2: beta(0.999, 'Decay of the mean of squared gradients.'),
    }),
    z.strictObject({
      type: z.literal('sgd').describe('Gradient descent with momentum.'),
      ...base,
      nesterov: z.boolean().default(true).describe('Look ahead by the momentum.'),
      momentum: beta(0.9, 'Decay of the velocity.'),
    }),
    z.strictObject({
      type: z.literal('muon').describe('Orthogonalised momentum for matrices, Adam for the rest.'),
      ...base,
      mu: beta(0.95, 'Decay of the velocity of matrices.'),
      betas1: beta(0.9, 'Decay of the mean of gradients, for what is not a matrix.'),
      betas2: beta(0.95, 'Decay of the mean of squared gradients, for what is not a matrix.'),
    }),
    z.strictObject({ type: z.literal('sign_sgd').describe('Steps by the sign of the gradient.'), ...base }),
  ])
  .prefault({ type: 'adamw' })
  .describe('The optimiser.')

const warmup = z.int().min(0).default(10).describe('Steps in which the rate rises from 0.')
const floor = z.number().min(0).default(0).describe('Rate at the end.')

export const SchedulerTable = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('constant').describe('The same rate at every step.') }),
    z.strictObject({
      type: z.literal('linear').describe('Rises, stays, and falls in straight lines.'),
      warmup_steps: warmup,
      decay_steps: z.int().min(0).default(10).describe('Steps at the end in which the rate falls.'),
      min_lr: floor,
    }),
    z.strictObject({ type: z.literal('cosine').describe('Rises in a line, then falls as a cosine.'), warmup_steps: warmup, min_lr: floor }),
  ])
  .prefault({ type: 'constant' })
  .describe('How the learning rate changes over the run.')
