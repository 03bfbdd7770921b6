import { createAdamW, createMuon, createSgd, createSignSgd, type Optimiser, type Trainable } from '@trilithon/tensor'
import type { z } from 'zod'
import type { OptimTable } from '../configuration/optim-table.ts'

/** The optimiser that the table `optim` names. */
export function createOptimiser(parameters: Iterable<Trainable>, optim: z.output<typeof OptimTable>): Optimiser {
  const { weight_decay: weightDecay } = optim
  switch (optim.type) {
    case 'adamw':
      return createAdamW(parameters, { weightDecay, beta1: optim.betas1, beta2: optim.betas2 })
    case 'sgd':
      return createSgd(parameters, { weightDecay, momentum: optim.momentum, isNesterov: optim.nesterov })
    case 'sign_sgd':
      return createSignSgd(parameters, { weightDecay })
    case 'muon':
      return createMuon(parameters, { weightDecay, momentum: optim.mu, adamw: { beta1: optim.betas1, beta2: optim.betas2 } })
  }
}
