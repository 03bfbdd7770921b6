import { z } from 'zod'
import { type CommonConfig, commonConfig } from '../../config/common-keys.ts'
import type { ConfigParse } from '../../config/config-parse.ts'
import { type GroupedAttentionConfig, GroupedAttentionKeys, groupedAttention } from '../qwen3/config.ts'

/** Mixture of experts of any family: counts and widths. */
export interface ExpertsConfig {
  readonly experts: number
  readonly expertsPerToken: number
  readonly expertWidth: number
  readonly normalizeTopK: boolean
  /** Whether a layer has experts, by layer index. */
  readonly sparseLayers: readonly boolean[]
}

/** Qwen3 with experts: softmax over all experts, then the best k, divided by their sum. */
export interface Qwen3MoeConfig extends CommonConfig, GroupedAttentionConfig, ExpertsConfig {
  readonly family: 'qwen3_moe'
}

export const Qwen3MoeKeys = GroupedAttentionKeys.extend({
  // Two spellings in use.
  num_experts: z.int().positive().nullish(),
  num_local_experts: z.int().positive().nullish(),
  num_experts_per_tok: z.int().positive(),
  moe_intermediate_size: z.int().positive(),
  norm_topk_prob: z.boolean().default(false),
  decoder_sparse_step: z.int().positive().default(1),
  mlp_only_layers: z.array(z.int()).nullish(),
})

export function qwen3MoeConfig(keys: z.infer<typeof Qwen3MoeKeys>): ConfigParse<Qwen3MoeConfig> {
  const attention = groupedAttention(keys)
  if ('fault' in attention) return attention
  const experts = keys.num_experts ?? keys.num_local_experts
  if (experts === undefined || experts === null) return { fault: 'num_experts is missing' }
  if (keys.num_experts_per_tok > experts) return { fault: 'num_experts_per_tok is greater than num_experts' }
  const dense = new Set(keys.mlp_only_layers ?? [])
  const sparseLayers = Array.from(
    { length: keys.num_hidden_layers },
    (_, layer) => !dense.has(layer) && (layer + 1) % keys.decoder_sparse_step === 0,
  )
  return {
    config: {
      family: 'qwen3_moe',
      ...commonConfig(keys),
      ...attention.config,
      experts,
      expertsPerToken: keys.num_experts_per_tok,
      expertWidth: keys.moe_intermediate_size,
      normalizeTopK: keys.norm_topk_prob,
      sparseLayers,
    },
  }
}
