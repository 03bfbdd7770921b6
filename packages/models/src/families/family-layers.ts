import type { ModelConfig } from '../config/model-config.ts'
import type { DecoderLayer } from '../layers/decoder-layer.ts'
import type { LayerWeights } from '../layers/layer-weights.ts'
import { qwen3Layers } from './qwen3/layers.ts'

/** What the layers of a family may be built with. */
export interface LayerOptions {
  /** Weight of the indexer's own loss; 0 freezes the indexer. */
  readonly indexKlWeight?: number
}

/** The decoder layers of a model over its declared weights. */
export function familyLayers(config: ModelConfig, weights: LayerWeights, _options: LayerOptions): DecoderLayer[] {
  switch (config.family) {
    case 'qwen3':
      return qwen3Layers(config, weights)
    default:
      throw new Error('to come')
  }
}
