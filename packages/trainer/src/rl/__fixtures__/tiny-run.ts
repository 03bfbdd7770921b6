import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createModel, parseModelConfig, saveModel } from '@trilithon/models'
import { createCharTokenizer } from '@trilithon/renderers'
import { TrainerSchema } from '../../configuration/trainer-schema.ts'
import { prepareRl, type RlSetup } from '../rl-setup.ts'

/** Two layers, of which one has experts, and sparse attention. */
export const tinyModelJson = {
  model_type: 'glm_moe_dsa',
  vocab_size: 20,
  hidden_size: 16,
  num_attention_heads: 2,
  intermediate_size: 24,
  num_hidden_layers: 2,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-6,
  rope_theta: 100,
  initializer_range: 0.3,
  q_lora_rank: 8,
  kv_lora_rank: 6,
  qk_nope_head_dim: 4,
  qk_rope_head_dim: 4,
  v_head_dim: 4,
  n_routed_experts: 4,
  num_experts_per_tok: 2,
  moe_intermediate_size: 6,
  n_shared_experts: 1,
  first_k_dense_replace: 1,
  index_n_heads: 8,
  index_head_dim: 4,
  index_topk: 4,
}

/** A folder with a tiny model in `model`. */
export function makeTinyFolder(json: object = tinyModelJson): string {
  const folder = mkdtempSync(join(tmpdir(), 'trilithon-rl-'))
  const model = createModel(parseModelConfig(json, 'config.json'), { seed: 1, configText: JSON.stringify(json) })
  saveModel(model, join(folder, 'model'), { documents: createCharTokenizer('abcdefghijklmnop').files })
  model.dispose()
  return folder
}

/** What a configuration of the trainer resolves to, with values that fit the tiny model. */
export function tinySetup(folder: string, changes: object = {}): RlSetup {
  const config = TrainerSchema.parse({
    max_steps: 6,
    model: { name: 'model', seq_len: 32 },
    tokenizer: { name: 'model' },
    optim: { type: 'adamw', lr: 1e-2 },
    ckpt: {},
    output_dir: 'out',
    ...changes,
  })
  return prepareRl({ config, workingDirectory: folder, environment: {} })
}
