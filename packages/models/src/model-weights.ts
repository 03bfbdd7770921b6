import type { ModelConfig } from './config/model-config.ts'
import { glmMoeDsaWeights } from './families/glm-moe-dsa/weights.ts'
import { qwen3Weights } from './families/qwen3/weights.ts'
import { qwen3MoeWeights } from './families/qwen3-moe/weights.ts'
import type { WeightSpec } from './weight-spec.ts'

/** All weights of a model on meta: nothing is allocated, so a model of any size can be declared anywhere. */
export function modelWeights(config: ModelConfig): Iterable<WeightSpec> {
  switch (config.family) {
    case 'qwen3':
      return qwen3Weights(config)
    case 'qwen3_moe':
      return qwen3MoeWeights(config)
    case 'glm_moe_dsa':
      return glmMoeDsaWeights(config)
  }
}

/** Whether a tensor of a checkpoint is left out on purpose: the layers for multi-token prediction. */
export function isIgnoredTensor(config: ModelConfig, name: string): boolean {
  if (config.family !== 'glm_moe_dsa') return false
  const layer = /^model\.layers\.(\d+)\./.exec(name)?.[1]
  return layer !== undefined && Number(layer) >= config.layers && Number(layer) < config.layers + config.nextTokenLayers
}
