import { defineConfigurationRoot } from '@trilithon/core'
import { deriveInference, inferenceNotices, inferenceRules } from './inference-rules.ts'
import { InferenceSchema } from './inference-schema.ts'

/** The root `inference`: the engines that generate. */
export const inferenceRoot = defineConfigurationRoot({
  name: 'inference',
  schema: InferenceSchema,
  slots: [
    { at: 'kv_cache_offload', defaultType: null, description: 'Where KV goes that no longer fits the engine.' },
    { at: 'weight_broadcast', defaultType: 'filesystem', description: 'How a new version of the weights arrives.' },
    { at: 'deployment', defaultType: 'single_node', description: 'Where the engines run.' },
    {
      at: 'deployment.router',
      defaultType: null,
      impliedType: 'vllm-router',
      description: 'Router process before the engines of several nodes.',
    },
  ],
  derive: deriveInference,
  rules: inferenceRules,
  notices: inferenceNotices,
})
