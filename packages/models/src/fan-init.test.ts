import { toArray } from '@trilithon/tensor'
import type { TinyFamily } from '@trilithon/testing'
import { describe, expect, it } from 'vitest'
import { tinyConfig } from '../test/tiny-models.ts'
import { createModel, type InitScheme } from './model/create-model.ts'

/** Wide enough that a standard deviation says something: the smallest matrix below has 1,536 elements. */
const wide = { vocab_size: 96, hidden_size: 64, intermediate_size: 48, moe_intermediate_size: 40, num_attention_heads: 4 }
const latent = { q_lora_rank: 32, kv_lora_rank: 24, qk_nope_head_dim: 16, qk_rope_head_dim: 8, v_head_dim: 20, n_routed_experts: 24 }
const indexed = { index_n_heads: 32, index_head_dim: 24 }

/** Mean and standard deviation of each weight. */
function momentsOf(family: TinyFamily, init: InitScheme, changes: object = {}) {
  const model = createModel(tinyConfig(family, { ...wide, ...changes }), { seed: 5, init })
  try {
    return new Map(
      [...model.weights].map(([name, { value }]) => {
        const values = toArray(value) as Float32Array
        const mean = values.reduce((sum, element) => sum + element, 0) / values.length
        const variance = values.reduce((sum, element) => sum + (element - mean) ** 2, 0) / values.length
        return [name, { mean, deviation: Math.sqrt(variance), elements: values.length }]
      }),
    )
  } finally {
    model.dispose()
  }
}

describe('weights by fan-in', () => {
  // Inputs of a row, by the formulas of the layers.
  it.each([
    ['model.embed_tokens.weight', 1],
    ['lm_head.weight', 1 / Math.sqrt(3 * 64)],
    ['model.layers.0.self_attn.q_a_proj.weight', 1 / Math.sqrt(3 * 64)],
    ['model.layers.0.self_attn.q_b_proj.weight', 1 / Math.sqrt(3 * 32)],
    ['model.layers.0.self_attn.kv_a_proj_with_mqa.weight', 1 / Math.sqrt(3 * 64)],
    ['model.layers.0.self_attn.kv_b_proj.weight', 1 / Math.sqrt(3 * 24)],
    ['model.layers.0.self_attn.o_proj.weight', 1 / Math.sqrt(3 * 4 * 20)],
    ['model.layers.0.self_attn.indexer.wq_b.weight', 1 / Math.sqrt(32)],
    ['model.layers.0.self_attn.indexer.wk.weight', 1 / Math.sqrt(64)],
    ['model.layers.0.self_attn.indexer.weights_proj.weight', 1 / Math.sqrt(64)],
    ['model.layers.0.mlp.gate_proj.weight', 1 / Math.sqrt(3 * 64)],
    ['model.layers.0.mlp.down_proj.weight', 1 / Math.sqrt(3 * 48)],
    ['model.layers.1.mlp.gate.weight', 1 / Math.sqrt(3 * 64)],
    ['model.layers.1.mlp.experts.gate_up_proj', 1 / Math.sqrt(3 * 64)],
    ['model.layers.1.mlp.experts.down_proj', 1 / Math.sqrt(3 * 40)],
    ['model.layers.1.mlp.shared_experts.down_proj.weight', 1 / Math.sqrt(3 * 40)],
  ])('%s begins with %d', (name, expected) => {
    const { mean, deviation, elements } = glm.get(name) ?? { mean: Number.NaN, deviation: Number.NaN, elements: 0 }
    expect(elements).toBeGreaterThan(1500)
    // Six standard errors of either.
    expect(Math.abs(mean)).toBeLessThan((6 * expected) / Math.sqrt(elements))
    expect(Math.abs(deviation / expected - 1)).toBeLessThan(6 / Math.sqrt(2 * elements))
  })
  const glm = momentsOf('glm_moe_dsa', 'fan', { ...latent, ...indexed })

  it('leaves norms and buffers as they are', () => {
    expect(glm.get('model.layers.1.input_layernorm.weight')).toMatchObject({ mean: 1, deviation: 0 })
    expect(glm.get('model.layers.0.self_attn.indexer.k_norm.bias')).toMatchObject({ mean: 0, deviation: 0 })
    expect(glm.get('model.layers.1.mlp.gate.e_score_correction_bias')).toMatchObject({ mean: 0, deviation: 0 })
  })

  it('keeps an embedding that is the head too at the size of a head', () => {
    const { deviation } = momentsOf('qwen3', 'fan').get('model.embed_tokens.weight') ?? { deviation: 0 }
    expect(deviation * Math.sqrt(3 * 64)).toBeCloseTo(1, 1)
  })

  it('is asked for: otherwise the configuration says', () => {
    const { deviation } = momentsOf('qwen3', 'config', { initializer_range: 0.3 }).get('model.layers.0.mlp.gate_proj.weight') ?? {
      deviation: 0,
    }
    expect(deviation).toBeCloseTo(0.3, 1)
  })
})
