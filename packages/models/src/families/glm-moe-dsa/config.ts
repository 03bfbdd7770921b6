import { z } from 'zod'
import { type CommonConfig, CommonKeys, commonConfig } from '../../config/common-keys.ts'
import type { ConfigParse } from '../../config/config-parse.ts'
import { type RopeConfig, ropeTheta } from '../../config/rope-config.ts'
import type { ExpertsConfig } from '../qwen3-moe/config.ts'

/** Latent attention over keys that an indexer chooses (DSA). */
export interface IndexerConfig {
  readonly heads: number
  readonly headDim: number
  /** Keys that a query attends to at most. */
  readonly topK: number
  readonly rope: RopeConfig
  /** Layers with an indexer of their own; every other takes the choice of the nearest such layer before it. */
  readonly fullLayers: readonly boolean[]
}

/** GLM-5 (5, 5.1, 5.2). */
export interface GlmMoeDsaConfig extends CommonConfig, ExpertsConfig {
  readonly family: 'glm_moe_dsa'
  readonly qLoraRank: number
  readonly kvLoraRank: number
  readonly qkNopeHeadDim: number
  readonly qkRopeHeadDim: number
  readonly vHeadDim: number
  /** Of the rotary part of queries and keys. */
  readonly rope: RopeConfig
  readonly indexer: IndexerConfig
  readonly sharedExperts: number
  readonly expertGroups: number
  readonly topKGroups: number
  readonly routedScalingFactor: number
  /** Layers after the last one that the file holds for multi-token prediction; they are not trained and not read. */
  readonly nextTokenLayers: number
}

const layerKinds = z.array(z.enum(['dense', 'sparse']))
const indexerKinds = z.array(z.enum(['full', 'shared']))

export const GlmMoeDsaKeys = CommonKeys.extend({
  q_lora_rank: z.int().positive(),
  kv_lora_rank: z.int().positive(),
  qk_nope_head_dim: z.int().positive(),
  qk_rope_head_dim: z.int().positive().multipleOf(2),
  v_head_dim: z.int().positive(),
  // GLM has always rotated interleaved pairs; a file that says otherwise is another model.
  rope_interleave: z.literal(true).default(true),
  indexer_rope_interleave: z.literal(true).default(true),
  n_routed_experts: z.int().positive(),
  num_experts_per_tok: z.int().positive(),
  moe_intermediate_size: z.int().positive(),
  n_shared_experts: z.int().nonnegative(),
  norm_topk_prob: z.boolean().default(true),
  routed_scaling_factor: z.number().positive().default(1),
  scoring_func: z.literal('sigmoid').default('sigmoid'),
  topk_method: z.literal('noaux_tc').default('noaux_tc'),
  n_group: z.int().positive().default(1),
  topk_group: z.int().positive().default(1),
  first_k_dense_replace: z.int().nonnegative().default(0),
  moe_layer_freq: z.int().positive().default(1),
  mlp_layer_types: layerKinds.nullish(),
  index_n_heads: z.int().positive(),
  index_head_dim: z.int().positive(),
  index_topk: z.int().positive(),
  indexer_types: indexerKinds.nullish(),
  index_topk_pattern: z
    .string()
    .regex(/^[FS]+$/)
    .nullish(),
  index_topk_freq: z.int().positive().nullish(),
  index_skip_topk_offset: z.int().positive().nullish(),
  num_nextn_predict_layers: z.int().nonnegative().nullish(),
})
type Keys = z.infer<typeof GlmMoeDsaKeys>

/** An explicit list, then the pattern, then the rule `max(i - offset + 1, 0) mod freq == 0`. */
function fullIndexerLayers(keys: Keys): boolean[] {
  const { num_hidden_layers: layers, indexer_types: types, index_topk_pattern: pattern } = keys
  if (types !== undefined && types !== null) return types.slice(0, layers).map((type) => type === 'full')
  if (pattern !== undefined && pattern !== null) return [...pattern].slice(0, layers).map((letter) => letter === 'F')
  const frequency = keys.index_topk_freq ?? 1
  const offset = keys.index_skip_topk_offset ?? 2
  return Array.from({ length: layers }, (_, layer) => Math.max(layer - offset + 1, 0) % frequency === 0)
}

function sparseLayers(keys: Keys): boolean[] {
  const { num_hidden_layers: layers, mlp_layer_types: types } = keys
  if (types !== undefined && types !== null) return types.slice(0, layers).map((type) => type === 'sparse')
  return Array.from({ length: layers }, (_, layer) => layer >= keys.first_k_dense_replace && layer % keys.moe_layer_freq === 0)
}

export function glmMoeDsaConfig(keys: Keys): ConfigParse<GlmMoeDsaConfig> {
  const base = ropeTheta(keys)
  if ('fault' in base) return base
  const full = fullIndexerLayers(keys)
  const sparse = sparseLayers(keys)
  const { num_hidden_layers: layers, n_routed_experts: experts, n_group: groups, topk_group: topKGroups, num_experts_per_tok: topK } = keys
  if (full.length !== layers) return { fault: `the indexer schedule names ${full.length} layers of ${layers}` }
  if (full[0] !== true) return { fault: 'the first layer shares an indexer, and there is none before it' }
  if (sparse.length !== layers) return { fault: `mlp_layer_types names ${sparse.length} layers of ${layers}` }
  if (experts % groups !== 0 || topKGroups > groups)
    return { fault: 'n_routed_experts is no multiple of n_group, or topk_group is greater' }
  if (topK > (experts / groups) * topKGroups) return { fault: 'num_experts_per_tok is greater than the experts of the chosen groups' }
  if (keys.index_head_dim < keys.qk_rope_head_dim) return { fault: 'index_head_dim is smaller than qk_rope_head_dim' }
  const rope: RopeConfig = { theta: base.theta, width: keys.qk_rope_head_dim, layout: 'interleaved' }
  return {
    config: {
      family: 'glm_moe_dsa',
      ...commonConfig(keys),
      qLoraRank: keys.q_lora_rank,
      kvLoraRank: keys.kv_lora_rank,
      qkNopeHeadDim: keys.qk_nope_head_dim,
      qkRopeHeadDim: keys.qk_rope_head_dim,
      vHeadDim: keys.v_head_dim,
      rope,
      indexer: { heads: keys.index_n_heads, headDim: keys.index_head_dim, topK: keys.index_topk, rope, fullLayers: full },
      experts,
      expertsPerToken: topK,
      expertWidth: keys.moe_intermediate_size,
      normalizeTopK: keys.norm_topk_prob,
      sparseLayers: sparse,
      sharedExperts: keys.n_shared_experts,
      expertGroups: groups,
      topKGroups,
      routedScalingFactor: keys.routed_scaling_factor,
      nextTokenLayers: keys.num_nextn_predict_layers ?? 0,
    },
  }
}
