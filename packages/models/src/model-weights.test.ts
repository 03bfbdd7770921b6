import { TrilithonError } from '@trilithon/core'
import { describe, expect, it } from 'vitest'
import { glm51, glm52, qwen3Moe, qwen3Small } from './__fixtures__/published-configs.ts'
import type { ModelConfig } from './config/model-config.ts'
import { parseModelConfig } from './config/parse-model-config.ts'
import { isIgnoredTensor, modelWeights } from './model-weights.ts'
import { countParameters, elementsOf } from './weight-spec.ts'

const parse = (json: unknown) => parseModelConfig(json, 'config.json')
const weights = (config: ModelConfig) => [...modelWeights(config)]

describe('published models on meta', () => {
  it.each([
    ['Qwen3-0.6B', qwen3Small, 596_049_920],
    ['Qwen3-30B-A3B', qwen3Moe, 30_532_122_624],
    ['GLM-5.1', glm51, 743_911_199_232],
    ['GLM-5.2', glm52, 743_377_000_704],
  ])('%s has its published number of parameters', (_, json, count) => {
    expect(countParameters(modelWeights(parse(json)))).toBe(count)
  })

  it('agrees for both spellings of the rotary keys', () => {
    const { rope_theta: theta, rope_scaling: _, ...rest } = qwen3Small
    expect(parse({ ...rest, rope_parameters: { rope_theta: theta, rope_type: 'default' } })).toEqual(parse(qwen3Small))
    expect(parse({ ...qwen3Small, rope_scaling: { type: 'default' } })).toEqual(parse(qwen3Small))
  })

  it('lists every tensor of the GLM-5.1 checkpoint by its name', () => {
    const config = parse(glm51)
    const names = weights(config).flatMap(({ parts }) => parts.map(({ name }) => name))
    expect(new Set(names).size).toBe(names.length)
    // 59,870 in the published index, of which layer 78 has a full layer and four tensors of its own.
    const lastLayer = names.filter((name) => name.startsWith('model.layers.77.')).length
    expect(names.length + lastLayer + 4).toBe(59_870)
    expect(names).toContain('model.layers.3.mlp.experts.255.down_proj.weight')
    expect(isIgnoredTensor(config, 'model.layers.78.eh_proj.weight')).toBe(true)
    expect(isIgnoredTensor(config, 'model.layers.79.eh_proj.weight')).toBe(false)
    expect(isIgnoredTensor(config, 'model.layers.77.mlp.gate.weight')).toBe(false)
  })

  it('fills each parameter with its parts, without gaps or overlap', () => {
    for (const json of [qwen3Small, { ...qwen3Moe, mlp_only_layers: [3] }, glm52]) {
      for (const { shape, parts } of modelWeights(parse(json))) {
        let end = 0
        for (const part of parts) {
          expect(part.offset).toBe(end)
          end += elementsOf(part.shape)
        }
        expect(end).toBe(elementsOf(shape))
      }
    }
  })
})

describe('indexer schedule', () => {
  const full = (more: object) => {
    const config = parse({ ...glm52, ...more })
    return config.family === 'glm_moe_dsa' ? config.indexer.fullLayers.flatMap((isFull, layer) => (isFull ? [layer] : [])) : []
  }

  it('follows the offset rule of GLM-5.2', () => {
    expect(full({})).toEqual([0, 1, 2, ...Array.from({ length: 18 }, (_, step) => 6 + 4 * step)])
  })

  it('takes an explicit list before a pattern before the rule', () => {
    const types = Array.from({ length: 78 }, (_, layer) => (layer < 5 ? 'full' : 'shared'))
    const pattern = `FF${'S'.repeat(76)}`
    expect(full({ indexer_types: types, index_topk_pattern: pattern })).toEqual([0, 1, 2, 3, 4])
    expect(full({ index_topk_pattern: pattern })).toEqual([0, 1])
    expect(full({ index_topk_freq: null, index_skip_topk_offset: null })).toHaveLength(78)
  })
})

describe('a config.json that cannot be built from', () => {
  const failure = (json: unknown): TrilithonError => {
    try {
      parse(json)
    } catch (error) {
      if (TrilithonError.is(error)) return error
      throw error
    }
    throw new Error('it parsed')
  }

  it.each([
    [{ model_type: 'llama' }, 'MODEL_UNSUPPORTED', 'model_type "llama"'],
    [{ model_type: 'constructor' }, 'MODEL_UNSUPPORTED', 'constructor'],
    [{}, 'MODEL_UNSUPPORTED', 'undefined'],
    [null, 'MODEL_UNSUPPORTED', 'undefined'],
    [{ ...qwen3Small, hidden_size: undefined }, 'MODEL_CONFIG_INVALID', 'hidden_size'],
    [{ ...qwen3Small, hidden_size: 10.5 }, 'MODEL_CONFIG_INVALID', 'hidden_size'],
    [{ ...qwen3Small, num_key_value_heads: 5 }, 'MODEL_CONFIG_INVALID', 'no multiple'],
    [{ ...qwen3Small, rope_scaling: { rope_type: 'yarn', factor: 4 } }, 'MODEL_CONFIG_INVALID', 'yarn'],
    [{ ...qwen3Small, rope_theta: undefined }, 'MODEL_CONFIG_INVALID', 'rope_theta'],
    [{ ...qwen3Small, attention_bias: true }, 'MODEL_CONFIG_INVALID', 'attention_bias'],
    [{ ...qwen3Moe, num_experts_per_tok: 129 }, 'MODEL_CONFIG_INVALID', 'num_experts_per_tok'],
    [{ ...glm51, indexer_types: ['shared', ...Array(77).fill('full')] }, 'MODEL_CONFIG_INVALID', 'first layer shares'],
    [{ ...glm51, indexer_types: ['full'] }, 'MODEL_CONFIG_INVALID', 'names 1 layers of 78'],
    [{ ...glm51, n_group: 3 }, 'MODEL_CONFIG_INVALID', 'n_group'],
    [{ ...glm51, scoring_func: 'softmax' }, 'MODEL_CONFIG_INVALID', 'scoring_func'],
  ])('%# is one clear error', (json, code, text) => {
    const error = failure(json)
    expect(error.code).toBe(code)
    expect(error.message).toContain(text)
    expect(error.message).toContain('config.json')
    expect(error.hint).toBeTruthy()
  })
})
