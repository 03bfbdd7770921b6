const common = {
  vocab_size: 19,
  hidden_size: 12,
  num_attention_heads: 2,
  intermediate_size: 10,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-6,
  rope_theta: 100,
  // Wide, so that no gradient is too small to be seen.
  initializer_range: 0.4,
}
const grouped = { num_key_value_heads: 1, head_dim: 4 }
const experts = { num_experts_per_tok: 2, moe_intermediate_size: 6 }

/** `config.json` of a model of every family, small enough for double precision: every kind of parameter, a few of each. */
export const tinyModelJson = {
  qwen3: { ...common, ...grouped, model_type: 'qwen3', num_hidden_layers: 2, tie_word_embeddings: true },
  qwen3_moe: {
    ...common,
    ...grouped,
    ...experts,
    model_type: 'qwen3_moe',
    num_hidden_layers: 2,
    num_experts: 5,
    norm_topk_prob: true,
    mlp_only_layers: [0],
  },
  glm_moe_dsa: {
    ...common,
    ...experts,
    model_type: 'glm_moe_dsa',
    num_hidden_layers: 3,
    q_lora_rank: 8,
    kv_lora_rank: 6,
    qk_nope_head_dim: 4,
    qk_rope_head_dim: 4,
    v_head_dim: 5,
    n_routed_experts: 6,
    n_shared_experts: 1,
    n_group: 2,
    topk_group: 1,
    routed_scaling_factor: 2.5,
    first_k_dense_replace: 1,
    index_n_heads: 8,
    index_head_dim: 6,
    index_topk: 4,
    indexer_types: ['full', 'shared', 'full'],
  },
} as const

export type TinyFamily = keyof typeof tinyModelJson
export const tinyFamilies = Object.keys(tinyModelJson) as TinyFamily[]
