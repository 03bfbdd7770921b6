import { declareEnds, declareIn, declareMlp } from '../../layers/declare.ts'
import type { WeightSpec } from '../../weight-spec.ts'
import { declareGroupedAttention } from '../qwen3/weights.ts'
import type { Qwen3MoeConfig } from './config.ts'

/** Weights of a Qwen3 with experts, in the order of the forward pass. */
export function qwen3MoeWeights(config: Qwen3MoeConfig): Iterable<WeightSpec> {
  function* layers(): Iterable<WeightSpec> {
    for (let index = 0; index < config.layers; index++) {
      const layer = `model.layers.${index}`
      const declare = declareIn(layer, config)
      yield* declareGroupedAttention(declare, layer, config)
      if (config.sparseLayers[index] === true) {
        yield declare.matrix(`${layer}.mlp.gate.weight`, config.experts, config.hiddenSize)
        yield* declare.experts(`${layer}.mlp`, config.experts, config.expertWidth)
      } else {
        yield* declareMlp(declare, `${layer}.mlp`, config.hiddenSize, config.intermediateSize)
      }
    }
  }
  return declareEnds(config, layers())
}
