import { type Declare, declareEnds, declareIn, declareMlp } from '../../layers/declare.ts'
import type { WeightInit, WeightSpec } from '../../weight-spec.ts'
import type { GlmMoeDsaConfig } from './config.ts'

// Random indexers choose badly; a wider start lets their own loss sort the keys sooner.
const indexerInit: WeightInit = { kind: 'normal', std: 0.05 }

function declareAttention({ matrix, vector }: Declare, layer: string, full: boolean, config: GlmMoeDsaConfig): WeightSpec[] {
  const { hiddenSize: hidden, heads, qLoraRank, kvLoraRank, qkNopeHeadDim, qkRopeHeadDim, vHeadDim, indexer } = config
  const attention = `${layer}.self_attn`
  const own = { trained: 'indexer', init: indexerInit } as const
  return [
    vector(`${layer}.input_layernorm.weight`, hidden, 1),
    matrix(`${attention}.q_a_proj.weight`, qLoraRank, hidden),
    vector(`${attention}.q_a_layernorm.weight`, qLoraRank, 1),
    matrix(`${attention}.q_b_proj.weight`, heads * (qkNopeHeadDim + qkRopeHeadDim), qLoraRank),
    matrix(`${attention}.kv_a_proj_with_mqa.weight`, kvLoraRank + qkRopeHeadDim, hidden),
    vector(`${attention}.kv_a_layernorm.weight`, kvLoraRank, 1),
    matrix(`${attention}.kv_b_proj.weight`, heads * (qkNopeHeadDim + vHeadDim), kvLoraRank),
    matrix(`${attention}.o_proj.weight`, hidden, heads * vHeadDim),
    ...(full
      ? [
          matrix(`${attention}.indexer.wq_b.weight`, indexer.heads * indexer.headDim, qLoraRank, own),
          matrix(`${attention}.indexer.wk.weight`, indexer.headDim, hidden, own),
          vector(`${attention}.indexer.k_norm.weight`, indexer.headDim, 1, { trained: 'indexer' }),
          vector(`${attention}.indexer.k_norm.bias`, indexer.headDim, 0, { trained: 'indexer' }),
          matrix(`${attention}.indexer.weights_proj.weight`, indexer.heads, hidden, own),
        ]
      : []),
    vector(`${layer}.post_attention_layernorm.weight`, hidden, 1),
  ]
}

/** Weights of GLM-5, in the order of the forward pass; correction biases are buffers. */
export function glmMoeDsaWeights(config: GlmMoeDsaConfig): Iterable<WeightSpec> {
  function* layers(): Iterable<WeightSpec> {
    for (let index = 0; index < config.layers; index++) {
      const layer = `model.layers.${index}`
      const mlp = `${layer}.mlp`
      const declare = declareIn(layer, config)
      yield* declareAttention(declare, layer, config.indexer.fullLayers[index] === true, config)
      if (config.sparseLayers[index] !== true) {
        yield* declareMlp(declare, mlp, config.hiddenSize, config.intermediateSize)
        continue
      }
      yield declare.matrix(`${mlp}.gate.weight`, config.experts, config.hiddenSize)
      yield declare.vector(`${mlp}.gate.e_score_correction_bias`, config.experts, 0, { kind: 'buffer', trained: 'never' })
      yield* declare.experts(mlp, config.experts, config.expertWidth)
      if (config.sharedExperts > 0) {
        yield* declareMlp(declare, `${mlp}.shared_experts`, config.hiddenSize, config.expertWidth * config.sharedExperts)
      }
    }
  }
  return declareEnds(config, layers())
}
