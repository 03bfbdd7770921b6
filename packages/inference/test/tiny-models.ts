/** Small models of every family, in folders, and what the packed forward says of them. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpaquePayload } from '@trilithon/core'
import { createModel, createPackedContext, type Model, parseModelConfig, saveModel } from '@trilithon/models'
import { scope, toArray } from '@trilithon/tensor'

const common = {
  vocab_size: 61,
  hidden_size: 16,
  num_attention_heads: 2,
  intermediate_size: 24,
  max_position_embeddings: 512,
  rms_norm_eps: 1e-6,
  rope_theta: 100,
  initializer_range: 0.4,
}
const grouped = { num_key_value_heads: 1, head_dim: 8 }
const experts = { num_experts_per_tok: 2, moe_intermediate_size: 12 }

export const tinyJson = {
  qwen3: { ...common, ...grouped, model_type: 'qwen3', num_hidden_layers: 2, tie_word_embeddings: true },
  qwen3_moe: {
    ...common,
    ...grouped,
    ...experts,
    model_type: 'qwen3_moe',
    num_hidden_layers: 3,
    num_experts: 6,
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
    index_topk: 8,
    indexer_types: ['full', 'shared', 'full'],
  },
} as const

export const tinyFamilies = ['qwen3', 'qwen3_moe', 'glm_moe_dsa'] as const
export type TinyFamily = (typeof tinyFamilies)[number]

export function tinyModel(family: TinyFamily, seed: number, changes: object = {}): Model {
  const json = { ...tinyJson[family], ...changes }
  return createModel(parseModelConfig(json, 'config.json'), { seed, configText: JSON.stringify(json) })
}

/** Folders that one test file writes to. */
export class TestFolders {
  readonly root = mkdtempSync(join(tmpdir(), 'trilithon-engine-'))

  /** A model of this seed in a folder. */
  model(family: TinyFamily, seed: number, changes: object = {}, name = `${family}-${seed}`): string {
    const folder = join(this.root, name)
    if (existsSync(folder)) return folder
    const model = tinyModel(family, seed, changes)
    saveModel(model, folder)
    model.dispose()
    return folder
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true })
  }
}

/** Log-probability of every token but the first, by the trainer's packed forward, and the routed experts of every row. */
export function packedScores(
  model: Model,
  ids: ArrayLike<number>,
  temperature = 1,
): { readonly logprobs: Float32Array; readonly routes: OpaquePayload | null } {
  return scope(() => {
    const { hidden, routes } = model.forward(ids, createPackedContext([ids.length]), { recordRoutes: true })
    const targets = [...Array.from(ids).slice(1), 0]
    const logprobs = toArray(model.score(hidden, targets, { temperature: temperature === 0 ? 1 : temperature }).logprobs) as Float32Array
    return { logprobs: logprobs.slice(0, -1), routes }
  })
}

/** Ids without a pattern. */
export function someIds(count: number, vocab: number, seed = 1): number[] {
  const ids: number[] = []
  let state = seed
  for (let index = 0; index < count; index++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    ids.push(Math.floor((state / 2 ** 32) * vocab))
  }
  return ids
}
