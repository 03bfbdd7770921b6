import type { CommonConfig } from '../../config/common-keys.ts'
import { type Declare, declareEnds, declareIn, declareMlp } from '../../layers/declare.ts'
import type { WeightSpec } from '../../weight-spec.ts'
import type { GroupedAttentionConfig, Qwen3Config } from './config.ts'

/** Norms and projections of grouped attention, shared by the Qwen3 families. */
export function declareGroupedAttention(
  { matrix, vector }: Declare,
  layer: string,
  config: CommonConfig & GroupedAttentionConfig,
): WeightSpec[] {
  const { hiddenSize: hidden, heads, keyValueHeads, headDim } = config
  const attention = `${layer}.self_attn`
  return [
    vector(`${layer}.input_layernorm.weight`, hidden, 1),
    matrix(`${attention}.q_proj.weight`, heads * headDim, hidden),
    matrix(`${attention}.k_proj.weight`, keyValueHeads * headDim, hidden),
    matrix(`${attention}.v_proj.weight`, keyValueHeads * headDim, hidden),
    matrix(`${attention}.o_proj.weight`, hidden, heads * headDim),
    vector(`${attention}.q_norm.weight`, headDim, 1),
    vector(`${attention}.k_norm.weight`, headDim, 1),
    vector(`${layer}.post_attention_layernorm.weight`, hidden, 1),
  ]
}

/** Weights of a dense Qwen3, in the order of the forward pass. */
export function qwen3Weights(config: Qwen3Config): Iterable<WeightSpec> {
  function* layers(): Iterable<WeightSpec> {
    for (let index = 0; index < config.layers; index++) {
      const layer = `model.layers.${index}`
      const declare = declareIn(layer, config)
      yield* declareGroupedAttention(declare, layer, config)
      yield* declareMlp(declare, `${layer}.mlp`, config.hiddenSize, config.intermediateSize)
    }
  }
  return declareEnds(config, layers())
}
