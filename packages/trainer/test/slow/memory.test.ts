/** Budget: 20 s. Memory over 200 steps (known fault 118): what is allocated in a step is gone after it. */
import { createModel, parseModelConfig } from '@trilithon/models'
import { liveTensors } from '@trilithon/tensor'
import { expect, test } from 'vitest'
import { createDataLoader, createFakeDocuments, createOptimiser, opdLoss, sftLoss, trainStep } from '../../src/index.ts'
import { growthPerStep, residentMegabytes } from './growth.ts'

test('memory does not grow from step to step', () => {
  const config = parseModelConfig(
    {
      model_type: 'qwen3_moe',
      vocab_size: 64,
      hidden_size: 32,
      num_attention_heads: 2,
      num_key_value_heads: 1,
      head_dim: 16,
      intermediate_size: 32,
      num_hidden_layers: 2,
      num_experts: 4,
      num_experts_per_tok: 2,
      moe_intermediate_size: 16,
      max_position_embeddings: 64,
      rms_norm_eps: 1e-6,
      rope_theta: 100,
    },
    'config.json',
  )
  const model = createModel(config, { seed: 0 })
  const optimiser = createOptimiser(model.parameters(), {
    ...({ type: 'adamw', lr: 1e-3, weight_decay: 0, max_norm: 1, betas1: 0.9, betas2: 0.999 } as const),
  })
  const parts = { model, optimiser, losses: { sft: sftLoss, rl: sftLoss, opd: opdLoss }, maxNorm: 1, recompute: false, indexKlWeight: 0 }
  const source = createFakeDocuments({ vocabularySize: 64, seqLen: 64, length: 'variable', input_ids: 'random' })
  const loader = createDataLoader({ source, seqLen: 64, batchSize: 4, profile: 'fp32' })
  const megabytes: number[] = []
  const tensors = new Set<number>()
  for (let version = 0; version < 200; version++) {
    trainStep(parts, { microBatches: loader.next()?.microBatches ?? [], learningRate: 1e-3, version })
    megabytes.push(residentMegabytes())
    tensors.add(liveTensors().tensors)
  }
  expect(tensors.size).toBe(1)
  expect(growthPerStep(megabytes)).toBeLessThan(0.1)
  optimiser.dispose()
  model.dispose()
})
