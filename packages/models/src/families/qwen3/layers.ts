import { createDecoderLayer, type DecoderLayer } from '../../layers/decoder-layer.ts'
import { createGroupedAttention } from '../../layers/grouped-attention.ts'
import type { LayerWeights } from '../../layers/layer-weights.ts'
import { createMlp } from '../../layers/mlp.ts'
import type { Qwen3Config } from './config.ts'

export function qwen3Layers(config: Qwen3Config, weights: LayerWeights): DecoderLayer[] {
  return Array.from({ length: config.layers }, (_, index) => {
    const mlp = createMlp(weights, `model.layers.${index}.mlp`)
    return createDecoderLayer(index, weights, config.rmsNormEps, {
      attention: createGroupedAttention(weights, index, config),
      feedForward: (h) => ({ y: mlp(h) }),
      hasExperts: false,
      hasIndexer: false,
    })
  })
}
