import { type IndexRows, layerNorm, type RotaryTables, reshape, rope, type Tensor } from '@trilithon/tensor'
import type { IndexerConfig } from '../families/glm-moe-dsa/config.ts'
import type { LayerWeights } from './layer-weights.ts'

/** Of the keys' LayerNorm, in every implementation. */
const keyNormEps = 1e-6

/**
 * DSA's indexer: what it scores keys by. It reads the normalised query latent and the layer's input, both detached: only its own loss may train it,
 * and where it is frozen nothing is recorded.
 */
export function createIndexer(weights: LayerWeights, prefix: string, { heads, headDim, rope: { layout } }: IndexerConfig) {
  const wqB = weights.projection(`${prefix}.wq_b.weight`)
  const wk = weights.projection(`${prefix}.wk.weight`)
  const headWeights = weights.projection(`${prefix}.weights_proj.weight`)
  const [normWeight, normBias] = [weights.parameter(`${prefix}.k_norm.weight`), weights.parameter(`${prefix}.k_norm.bias`)]
  const isInterleaved = layout === 'interleaved'
  return (h: Tensor, queryLatent: Tensor, rotary: RotaryTables): IndexRows => {
    const rows = h.dim(0)
    const q = rope(reshape(wqB.apply(queryLatent), [rows, heads, headDim]), rotary, isInterleaved)
    const keys = layerNorm(wk.apply(h), normWeight.value, normBias.value, keyNormEps)
    const rotated = rope(reshape(keys, [rows, 1, headDim]), rotary, isInterleaved)
    return { q, k: reshape(rotated, [rows, headDim]), weights: headWeights.apply(h) }
  }
}

export type Indexer = ReturnType<typeof createIndexer>
