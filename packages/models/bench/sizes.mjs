// @ts-check
/** Sizes A, B and C of the comparisons: `config.json` of small models with every mechanism of their family. */

const common = { max_position_embeddings: 4096, rope_theta: 1e6, num_attention_heads: 4, num_experts_per_tok: 2 }
const a = { hidden_size: 128, num_hidden_layers: 4, intermediate_size: 384, moe_intermediate_size: 96, vocab_size: 128 }
const b = { hidden_size: 256, num_hidden_layers: 6, intermediate_size: 768, moe_intermediate_size: 128, vocab_size: 512 }
const c = { hidden_size: 192, num_hidden_layers: 6, intermediate_size: 512, moe_intermediate_size: 96, vocab_size: 512 }

const glm = {
  ...common,
  model_type: 'glm_moe_dsa',
  rms_norm_eps: 1e-5,
  first_k_dense_replace: 1,
  n_routed_experts: 8,
  n_shared_experts: 1,
  routed_scaling_factor: 2.5,
  q_lora_rank: 64,
  kv_lora_rank: 32,
  qk_nope_head_dim: 32,
  qk_rope_head_dim: 16,
  v_head_dim: 32,
  index_n_heads: 8,
  index_head_dim: 32,
  index_topk: 16,
}
const deep = { indexer_types: ['full', 'full', 'shared', 'full', 'shared', 'shared'] }
const wide = { q_lora_rank: 96, kv_lora_rank: 64, qk_rope_head_dim: 32, v_head_dim: 64, index_n_heads: 4, index_head_dim: 64 }

const qwen = {
  ...common,
  model_type: 'qwen3_moe',
  rms_norm_eps: 1e-6,
  num_key_value_heads: 2,
  head_dim: 32,
  num_experts: 8,
  norm_topk_prob: true,
}
const small = { hidden_size: 96, num_hidden_layers: 3, intermediate_size: 192, moe_intermediate_size: 48, vocab_size: 128 }

/** By `<family>-<size>`. */
export const sizes = {
  'glm_moe_dsa-A': { ...glm, ...a, indexer_types: ['full', 'full', 'shared', 'full'] },
  'glm_moe_dsa-B': { ...glm, ...b, ...deep, ...wide },
  'glm_moe_dsa-C': { ...glm, ...c, ...deep, n_routed_experts: 16, num_experts_per_tok: 4 },
  'qwen3_moe-A': { ...qwen, ...small },
  'qwen3_moe-B': { ...qwen, ...b, head_dim: 64 },
  'qwen3_moe-C': { ...qwen, ...c, num_experts: 16, num_experts_per_tok: 4 },
}
