import { reshape, rope } from '@trilithon/tensor'
import type { CommonConfig } from '../config/common-keys.ts'
import type { GroupedAttentionConfig } from '../families/qwen3/config.ts'
import type { Attention } from './decoder-layer.ts'
import type { LayerWeights } from './layer-weights.ts'

/** Grouped attention of the Qwen3 families: every query and key head is normalised, then rotated. */
export function createGroupedAttention(weights: LayerWeights, layer: number, config: CommonConfig & GroupedAttentionConfig): Attention {
  const { heads, keyValueHeads, headDim, rmsNormEps } = config
  const prefix = `model.layers.${layer}.self_attn`
  const q = weights.projection(`${prefix}.q_proj.weight`)
  const k = weights.projection(`${prefix}.k_proj.weight`)
  const v = weights.projection(`${prefix}.v_proj.weight`)
  const o = weights.projection(`${prefix}.o_proj.weight`)
  const qNorm = weights.rmsNorm(`${prefix}.q_norm.weight`, rmsNormEps)
  const kNorm = weights.rmsNorm(`${prefix}.k_norm.weight`, rmsNormEps)
  const scale = headDim ** -0.5
  const isInterleaved = config.rope.layout === 'interleaved'
  return (h, { context, rotary }) => {
    const rows = h.dim(0)
    const query = reshape(qNorm(reshape(q.apply(h), [-1, headDim])), [rows, heads, headDim])
    const key = reshape(kNorm(reshape(k.apply(h), [-1, headDim])), [rows, keyValueHeads, headDim])
    const value = reshape(v.apply(h), [rows, keyValueHeads, headDim])
    const out = context.attend(layer, rope(query, rotary, isInterleaved), rope(key, rotary, isInterleaved), value, scale)
    return { y: o.apply(reshape(out, [rows, heads * headDim])) }
  }
}
