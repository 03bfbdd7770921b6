import { sigmoidRouter } from '@trilithon/tensor'
import { createDecoderLayer, type DecoderLayer, type FeedForward } from '../../layers/decoder-layer.ts'
import { createExperts } from '../../layers/experts.ts'
import { createLatentAttention } from '../../layers/latent-attention.ts'
import type { LayerWeights } from '../../layers/layer-weights.ts'
import { createMlp } from '../../layers/mlp.ts'
import type { LayerOptions } from '../layer-options.ts'
import type { GlmMoeDsaConfig } from './config.ts'

export function glmMoeDsaLayers(config: GlmMoeDsaConfig, weights: LayerWeights, options: LayerOptions): DecoderLayer[] {
  return Array.from({ length: config.layers }, (_, index) => {
    const prefix = `model.layers.${index}.mlp`
    const hasExperts = config.sparseLayers[index] === true
    return createDecoderLayer(index, weights, config.rmsNormEps, {
      attention: createLatentAttention(weights, index, config, options),
      feedForward: hasExperts ? expertsOf(config, weights, prefix, options) : denseOf(weights, prefix),
      hasExperts,
      hasIndexer: config.indexer.fullLayers[index] === true,
    })
  })
}

function denseOf(weights: LayerWeights, prefix: string): FeedForward {
  const mlp = createMlp(weights, prefix)
  return (h) => ({ y: mlp(h) })
}

function expertsOf(config: GlmMoeDsaConfig, weights: LayerWeights, prefix: string, { exchange }: LayerOptions): FeedForward {
  const bias = weights.parameter(`${prefix}.gate.e_score_correction_bias`)
  return createExperts(weights, prefix, config, {
    router: (logits, { givenRoutes, selectMissing }) =>
      sigmoidRouter(logits, {
        topK: config.expertsPerToken,
        isNormalised: config.normalizeTopK,
        given: givenRoutes,
        selectMissing,
        bias: bias.value,
        groups: config.expertGroups,
        groupsKept: config.topKGroups,
        scale: config.routedScalingFactor,
      }),
    scores: 'sigmoid',
    exchange,
    shared: config.sharedExperts > 0 ? createMlp(weights, `${prefix}.shared_experts`) : null,
  })
}
