import { invariant } from '@trilithon/core'
import type { Composition } from '../../compose/composition.ts'
import type { RlConfiguration } from '../../roots/rl-configuration.ts'

/** The launcher's keys with the resolved roots below, of a composition of `rl`. */
export function rlConfigurationOf({ resolved }: Composition): RlConfiguration {
  const { rl, trainer, orchestrator, inference } = resolved
  invariant(rl !== undefined && trainer !== undefined && orchestrator !== undefined, 'a composition of rl has its roots')
  return { ...rl, trainer, orchestrator, inference: inference ?? null } as unknown as RlConfiguration
}
