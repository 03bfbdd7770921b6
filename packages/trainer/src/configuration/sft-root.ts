import { defineConfigurationRoot } from '@trilithon/core'
import { deriveSft, sftNotices, sftRules } from './sft-rules.ts'
import { SftSchema } from './sft-schema.ts'
import { modelNotices, modelRules, schedulerRules } from './trainer-rules.ts'

/** The root `sft`: supervised training on text. */
export const sftRoot = defineConfigurationRoot({
  name: 'sft',
  schema: SftSchema,
  slots: [{ at: 'deployment', defaultType: 'single_node', description: 'Where the ranks run.' }],
  derive: deriveSft,
  *rules(config) {
    yield* modelRules(config)
    yield* sftRules(config)
    yield* schedulerRules(config)
  },
  *notices(config) {
    yield* modelNotices(config)
    yield* sftNotices(config)
  },
})
