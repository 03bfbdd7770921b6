import { z } from 'zod'
import { type CommonConfig, CommonKeys, commonConfig } from '../../config/common-keys.ts'
import type { ConfigParse } from '../../config/config-parse.ts'
import { type RopeConfig, ropeTheta } from '../../config/rope-config.ts'

/** Grouped attention of the Qwen3 families: RMSNorm on every query and key head before the rotation. */
export interface GroupedAttentionConfig {
  readonly keyValueHeads: number
  readonly headDim: number
  readonly rope: RopeConfig
}

/** Qwen3, dense. */
export interface Qwen3Config extends CommonConfig, GroupedAttentionConfig {
  readonly family: 'qwen3'
}

/** Keys of grouped attention, also read by `qwen3_moe`. */
export const GroupedAttentionKeys = CommonKeys.extend({
  num_key_value_heads: z.int().positive(),
  head_dim: z.int().positive().multipleOf(2).nullish(),
  use_sliding_window: z.literal(false).default(false),
})

export function groupedAttention(keys: z.infer<typeof GroupedAttentionKeys>): ConfigParse<GroupedAttentionConfig> {
  const rope = ropeTheta(keys)
  if ('fault' in rope) return rope
  const headDim = keys.head_dim ?? keys.hidden_size / keys.num_attention_heads
  if (!Number.isInteger(headDim)) return { fault: 'head_dim is missing, and hidden_size is no multiple of num_attention_heads' }
  if (keys.num_attention_heads % keys.num_key_value_heads !== 0)
    return { fault: 'num_attention_heads is no multiple of num_key_value_heads' }
  return { config: { keyValueHeads: keys.num_key_value_heads, headDim, rope: { theta: rope.theta, width: headDim, layout: 'half' } } }
}

export const Qwen3Keys = GroupedAttentionKeys

export function qwen3Config(keys: z.infer<typeof Qwen3Keys>): ConfigParse<Qwen3Config> {
  const attention = groupedAttention(keys)
  return 'fault' in attention ? attention : { config: { family: 'qwen3', ...commonConfig(keys), ...attention.config } }
}
