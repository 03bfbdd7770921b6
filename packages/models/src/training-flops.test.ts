import { expect, test } from 'vitest'
import { glm51, qwen3Moe, qwen3Small } from './__fixtures__/published-configs.ts'
import { parseModelConfig } from './config/parse-model-config.ts'
import { activeMatmulWeights, trainingFlops } from './training-flops.ts'

const configOf = (json: object) => parseModelConfig(json, 'config.json')

test('weights that a token is multiplied by: the count of prime-rl for Qwen3-0.6B, and that of published models', () => {
  expect(activeMatmulWeights(configOf(qwen3Small))).toBe(595_984_384)
  // Of Qwen3-30B-A3B 3.3 B are active, embedding included, which is a look-up of 311 M.
  expect(activeMatmulWeights(configOf(qwen3Moe)) / 1e9).toBeCloseTo(3.34 - 0.31, 1)
  // Of GLM-5.1 about 40 B.
  expect(activeMatmulWeights(configOf(glm51)) / 1e9).toBeCloseTo(40.8, 0)
})

test('a dense model: six operations per weight and token, and causal attention', () => {
  const tiny = configOf({
    ...qwen3Small,
    vocab_size: 10,
    hidden_size: 4,
    num_hidden_layers: 2,
    num_attention_heads: 3,
    num_key_value_heads: 1,
    head_dim: 2,
    intermediate_size: 5,
  })
  // A layer: q and o 4 × 6, k and v 4 × 2, three of the MLP 4 × 5. The head: 10 × 4, the embedding's own.
  const weights = 2 * (24 + 24 + 8 + 8 + 60) + 40
  // Query t of a document sees t + 1 keys: 1 + 2 + 3 of the first, 1 of the second. Scores and sums: two products of head_dim each.
  const attention = 2 * 3 * (6 + 1) * 2 * 2
  expect(trainingFlops(tiny)([3, 1])).toBe(6 * weights * 4 + 3 * 2 * attention)
  expect(trainingFlops(tiny)([])).toBe(0)
})

test('a sparse model: the experts and the keys that a token goes to, indexers forwards unless they are trained', () => {
  const tiny = configOf({
    ...glm51,
    vocab_size: 10,
    hidden_size: 4,
    num_hidden_layers: 2,
    num_attention_heads: 3,
    q_lora_rank: 5,
    kv_lora_rank: 6,
    qk_nope_head_dim: 2,
    qk_rope_head_dim: 2,
    v_head_dim: 3,
    intermediate_size: 7,
    moe_intermediate_size: 2,
    n_routed_experts: 8,
    num_experts_per_tok: 2,
    n_shared_experts: 1,
    first_k_dense_replace: 1,
    index_n_heads: 8,
    index_head_dim: 2,
    index_topk: 2,
    indexer_types: ['full', 'shared'],
  })
  const attention = 5 * 4 + 3 * 4 * 5 + (6 + 2) * 4 + 3 * (2 + 3) * 6 + 4 * 9
  const dense = 3 * 7 * 4
  const sparse = 8 * 4 + (2 + 1) * 3 * 2 * 4
  const weights = 2 * attention + dense + sparse + 10 * 4
  const indexer = 8 * 2 * 5 + 2 * 4 + 8 * 4
  expect(activeMatmulWeights(tiny)).toBe(weights + indexer)
  // Queries of a document of 4 attend to 1, 2, 2, 2 keys: scores over latent and rotary part, sums over the latent part. The one indexer scores 10 pairs.
  const keys = 2 * 3 * (6 + 2 + 6) * 7
  const pairs = 8 * 2 * 10
  expect(trainingFlops(tiny)([4])).toBe(6 * (weights * 4 + keys) + 2 * (indexer * 4 + pairs))
  expect(trainingFlops(tiny, { trainsIndexers: true })([4])).toBe(6 * (weights * 4 + keys + indexer * 4 + pairs))
})
