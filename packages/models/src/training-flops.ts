import type { ModelConfig } from './config/model-config.ts'
import { modelWeights } from './model-weights.ts'
import { elementsOf, type WeightSpec } from './weight-spec.ts'

/** A forward takes a multiplication and an addition per weight and token; a backward takes two such products. */
const forward = 2
const forwardAndBackward = 6

/** Weights that one token is multiplied by: of experts those that it goes to, and the embedding as the head that it may be, not as a look-up. */
export function activeMatmulWeights(config: ModelConfig): number {
  return sumOf(config, () => true)
}

export interface TrainingFlopsOptions {
  /** Indexers are trained; otherwise only their forward is counted. */
  readonly trainsIndexers?: boolean
}

/**
 * Counts the floating-point operations that a step of training has to make for documents of these lengths, by the model's architecture: what is computed twice to
 * save memory is not counted twice. Attention is causal and counts the keys that a query attends to. Norms, rotations and routing are left out, since they are few.
 */
export function trainingFlops(
  config: ModelConfig,
  { trainsIndexers = false }: TrainingFlopsOptions = {},
): (lengths: Iterable<number>) => number {
  const indexer = trainsIndexers ? forwardAndBackward : forward
  const perToken =
    forwardAndBackward * sumOf(config, ({ trained }) => trained !== 'indexer') +
    indexer * sumOf(config, ({ trained }) => trained === 'indexer')
  return (lengths) => {
    let flops = 0
    for (const length of lengths) flops += perToken * length + documentAttention(config, length, indexer)
    return flops
  }
}

/** Scores and weighted sums of one document, over all layers. */
function documentAttention(config: ModelConfig, length: number, indexer: number): number {
  const pairs = (length * (length + 1)) / 2
  if (config.family !== 'glm_moe_dsa') return forwardAndBackward * config.layers * config.heads * 2 * config.headDim * pairs
  const { heads, kvLoraRank, qkRopeHeadDim, layers } = config
  const { heads: indexHeads, headDim, topK, fullLayers } = config.indexer
  // Queries behind the first top_k attend to that many keys; indexers score all of them.
  const early = Math.min(length, topK)
  const attended = (early * (early + 1)) / 2 + (length - early) * topK
  const attention = forwardAndBackward * layers * heads * (2 * kvLoraRank + qkRopeHeadDim) * attended
  return attention + indexer * fullLayers.filter(Boolean).length * indexHeads * headDim * pairs
}

function sumOf(config: ModelConfig, isCounted: (spec: WeightSpec) => boolean): number {
  let sum = 0
  for (const spec of modelWeights(config)) {
    const isLookup = spec.name === 'model.embed_tokens.weight' && !config.tiedEmbeddings
    if (spec.shape.length < 2 || isLookup || !isCounted(spec)) continue
    const share = spec.kind === 'expert' && 'experts' in config ? config.expertsPerToken / config.experts : 1
    sum += elementsOf(spec.shape) * share
  }
  return sum
}
