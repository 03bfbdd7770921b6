/** Shapes: T rows, H heads, N width of a head without rotation, P rotary width, V width of a value, R latent width. */
import { detach, headMatmul, type LatentKeys, type LatentQueries, reshape, rope, slice, type Tensor } from '@trilithon/tensor'
import type { GlmMoeDsaConfig } from '../families/glm-moe-dsa/config.ts'
import type { Attention, AttentionResult, LayerCall } from './decoder-layer.ts'
import { createIndexer } from './indexer.ts'
import type { LayerWeights } from './layer-weights.ts'

export interface LatentAttentionOptions {
  /** Weight of the indexer's own loss; 0: it is frozen, and the loss is not computed. */
  readonly indexKlWeight: number
}

/**
 * MLA in the absorbed form, over keys that an indexer chose. The keys' up-projection is applied to the queries and the values' to the result, so
 * that every head reads one shared latent row per token.
 */
export function createLatentAttention(
  weights: LayerWeights,
  layer: number,
  config: GlmMoeDsaConfig,
  { indexKlWeight }: LatentAttentionOptions,
): Attention {
  const { heads, kvLoraRank, qkNopeHeadDim, qkRopeHeadDim, vHeadDim, rmsNormEps, indexer: indexerConfig } = config
  const prefix = `model.layers.${layer}.self_attn`
  const qA = weights.projection(`${prefix}.q_a_proj.weight`)
  const qNorm = weights.rmsNorm(`${prefix}.q_a_layernorm.weight`, rmsNormEps)
  const qB = weights.projection(`${prefix}.q_b_proj.weight`)
  const kvA = weights.projection(`${prefix}.kv_a_proj_with_mqa.weight`)
  const kvNorm = weights.rmsNorm(`${prefix}.kv_a_layernorm.weight`, rmsNormEps)
  const kvB = weights.parameter(`${prefix}.kv_b_proj.weight`)
  const o = weights.projection(`${prefix}.o_proj.weight`)
  const indexer = indexerConfig.fullLayers[layer] === true ? createIndexer(weights, `${prefix}.indexer`, indexerConfig) : null
  const width = qkNopeHeadDim + qkRopeHeadDim
  const scale = width ** -0.5
  const isInterleaved = config.rope.layout === 'interleaved'

  const choose = (h: Tensor, queryLatent: Tensor, { context, givenChoice, isDense, rotary }: LayerCall) => {
    const given = isDense ? null : givenChoice
    const isTrained = indexKlWeight > 0
    // Nothing to compute: the layer shares a choice, or was given one, or looks at all keys anyway.
    if (indexer === null || (!isTrained && (isDense || given !== null))) return { choice: given, trained: null }
    const rows = indexer(detach(h), detach(queryLatent), rotary)
    const choice = isDense ? null : (given ?? context.choose(layer, rows, indexerConfig.topK))
    return { choice, trained: isTrained ? rows : null }
  }

  return (h, call): AttentionResult => {
    const rows = h.dim(0)
    const queryLatent = qNorm(qA.apply(h))
    const query = reshape(qB.apply(queryLatent), [rows, heads, width])
    const upProjection = reshape(kvB.value, [heads, qkNopeHeadDim + vHeadDim, kvLoraRank])
    const keyPart = slice(upProjection, 1, 0, qkNopeHeadDim)
    const valuePart = slice(upProjection, 1, qkNopeHeadDim, qkNopeHeadDim + vHeadDim)
    const q: LatentQueries = {
      latent: headMatmul(slice(query, 2, 0, qkNopeHeadDim), keyPart),
      rotary: rope(slice(query, 2, qkNopeHeadDim, width), call.rotary, isInterleaved),
    }
    const keyRows = kvA.apply(h)
    const rotary = reshape(slice(keyRows, 1, kvLoraRank, kvLoraRank + qkRopeHeadDim), [rows, 1, qkRopeHeadDim])
    const keys: LatentKeys = {
      latent: kvNorm(slice(keyRows, 1, 0, kvLoraRank)),
      rotary: reshape(rope(rotary, call.rotary, isInterleaved), [rows, qkRopeHeadDim]),
    }
    const { choice, trained } = choose(h, queryLatent, call)
    const { out, indexLoss } = call.context.attendLatent(layer, q, keys, choice, scale, trained)
    const values = headMatmul(out, valuePart, true)
    return { y: o.apply(reshape(values, [rows, heads * vHeadDim])), choice, indexLoss }
  }
}
