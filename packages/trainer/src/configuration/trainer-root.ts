import { defineConfigurationRoot } from '@trilithon/core'
import { deriveModel, deriveTokenizer, modelNotices, modelRules, trainerRules } from './trainer-rules.ts'
import { TrainerSchema } from './trainer-schema.ts'

/** The root `trainer`: one optimiser step per batch of the orchestrator. */
export const trainerRoot = defineConfigurationRoot({
  name: 'trainer',
  schema: TrainerSchema,
  slots: [{ at: 'weight_broadcast', defaultType: 'filesystem', description: 'How a new version of the weights reaches the engines.' }],
  derive(config) {
    const { model, optim } = deriveModel(config.model, config.optim)
    const benching = config.bench !== null
    return {
      ...config,
      model,
      optim,
      tokenizer: deriveTokenizer(config.tokenizer, model),
      ...(benching ? { max_steps: 4, ckpt: null, data: { fake: config.data.fake ?? { batch_size: 2, generate_samples: false } } } : {}),
    }
  },
  *rules(config) {
    yield* modelRules(config)
    yield* trainerRules(config)
  },
  notices: modelNotices,
})
