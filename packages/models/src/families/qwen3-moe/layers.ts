import { softmaxRouter } from '@trilithon/tensor'
import { createDecoderLayer, type DecoderLayer, type FeedForward } from '../../layers/decoder-layer.ts'
import { createExperts } from '../../layers/experts.ts'
import { createGroupedAttention } from '../../layers/grouped-attention.ts'
import type { LayerWeights } from '../../layers/layer-weights.ts'
import { createMlp } from '../../layers/mlp.ts'
import type { LayerOptions } from '../layer-options.ts'
import type { Qwen3MoeConfig } from './config.ts'

export function qwen3MoeLayers(config: Qwen3MoeConfig, weights: LayerWeights, { exchange }: LayerOptions): DecoderLayer[] {
  return Array.from({ length: config.layers }, (_, index) => {
    const prefix = `model.layers.${index}.mlp`
    const hasExperts = config.sparseLayers[index] === true
    const experts = (): FeedForward =>
      createExperts(weights, prefix, config, {
        router: (logits, { givenRoutes, selectMissing }) =>
          softmaxRouter(logits, {
            topK: config.expertsPerToken,
            isNormalised: config.normalizeTopK,
            given: givenRoutes,
            selectMissing,
          }),
        scores: 'softmax',
        exchange,
        shared: null,
      })
    const dense = (): FeedForward => {
      const mlp = createMlp(weights, prefix)
      return (h) => ({ y: mlp(h) })
    }
    return createDecoderLayer(index, weights, config.rmsNormEps, {
      attention: createGroupedAttention(weights, index, config),
      feedForward: hasExperts ? experts() : dense(),
      hasExperts,
      hasIndexer: false,
    })
  })
}
