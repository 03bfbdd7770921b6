/** `config.json` of the policy that runs with real processes train: small, with the vocabulary of the environment reverse-text. */
export const tinyPolicy = JSON.stringify({
  ...{ model_type: 'qwen3', vocab_size: 20, hidden_size: 32, num_attention_heads: 2, num_key_value_heads: 1, head_dim: 16 },
  ...{ intermediate_size: 64, num_hidden_layers: 2, max_position_embeddings: 64, rms_norm_eps: 1e-6, rope_theta: 100 },
})
