import { defineConfigurationRoot } from '@trilithon/core'
import type { RlConfiguration } from './rl-configuration.ts'
import { deriveRl } from './rl-derive.ts'
import { rlNotices } from './rl-notices.ts'
import { rlRules } from './rl-rules.ts'
import { RlSchema } from './rl-schema.ts'

/**
 * The root `rl`: inference, orchestrator and trainer as one run.
 *
 * `derive`, `rules` and `notices` get the launcher's keys together with the resolved roots below (`trainer`, `orchestrator`, `inference` or
 * null); what `derive` returns for those is theirs.
 */
export const rlRoot = defineConfigurationRoot({
  name: 'rl',
  schema: RlSchema,
  slots: [{ at: 'deployment', defaultType: 'single_node', description: 'Where the roles run.' }],
  derive: (config, isGiven) => deriveRl(config as RlConfiguration, isGiven),
  rules: (config, isGiven) => rlRules(config as RlConfiguration, isGiven),
  notices: (config) => rlNotices(config as RlConfiguration),
})
