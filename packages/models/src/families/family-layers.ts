import type { ModelConfig } from '../config/model-config.ts'
import type { DecoderLayer } from '../layers/decoder-layer.ts'
import type { LayerWeights } from '../layers/layer-weights.ts'
import { glmMoeDsaLayers } from './glm-moe-dsa/layers.ts'
import type { LayerOptions } from './layer-options.ts'
import { qwen3Layers } from './qwen3/layers.ts'
import { qwen3MoeLayers } from './qwen3-moe/layers.ts'

/** The decoder layers of a model over its declared weights. */
export function familyLayers(config: ModelConfig, weights: LayerWeights, options: LayerOptions): DecoderLayer[] {
  switch (config.family) {
    case 'qwen3':
      return qwen3Layers(config, weights)
    case 'qwen3_moe':
      return qwen3MoeLayers(config, weights, options)
    case 'glm_moe_dsa':
      return glmMoeDsaLayers(config, weights, options)
  }
}
