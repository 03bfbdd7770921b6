import { lagOf, type Router, type Sample } from '@trilithon/core'
import type { EpisodeRequest } from '@trilithon/environments'
import type { RoleEvent } from '@trilithon/monitor'
import { Orchestrator } from '../run/orchestrator.ts'
import type { OrchestratorParts } from '../run/orchestrator-parts.ts'
import { FakeEngines, type FakePartsOptions, FakePool, type FakePoolOptions, FakeTrainer, fakeParts } from './fake-world.ts'
import { VirtualClock } from './virtual-clock.ts'

export type WorldOptions = Partial<Omit<FakePartsOptions, 'pools' | 'router'>> & {
  readonly router: Router
  readonly pool?: Partial<FakePoolOptions>
  /** Milliseconds of a step of the trainer. */
  readonly stepMs?: number
  readonly change?: (parts: OrchestratorParts) => Partial<OrchestratorParts>
  /** The version that serves at the beginning. */
  readonly version?: number
}

/** An orchestrator with one environment, whose episodes take 100 ms unless told otherwise, and all that is played around it. */
export function createWorld(options: WorldOptions) {
  const clock = new VirtualClock()
  const engines = new FakeEngines(clock, options.version)
  const trainer = new FakeTrainer(clock, options.stepMs ?? 10, options.version)
  const pool = new FakePool({ clock, engines, episode: () => ({ ms: 100 }), ...options.pool })
  const made = fakeParts({ clock, engines, trainer, pools: [pool], ...options })
  const parts: OrchestratorParts = { ...made, ...options.change?.(made) }
  const orchestrator = new Orchestrator(parts)
  const run = async () => {
    const controller = new AbortController()
    const training = trainer.run(controller.signal)
    await clock.run(orchestrator.run(controller.signal).finally(() => controller.abort()))
    await training
  }
  return { clock, engines, trainer, pool, parts, orchestrator, run, events: made.events, records: made.records }
}

/** A number of an episode that its time may follow from. */
export const numberOf = ({ taskIndex, rolloutId }: EpisodeRequest): number => taskIndex * 16 + Number(rolloutId.split('.').at(-1))

export const lagIn = (step: number, { versions, mask }: Sample): number => lagOf(step, versions, mask)

/** The group of a sample. */
export const groupOf = (sampleId: string): string => sampleId.split('.')[0] ?? ''

/** What was told of each step. */
export const stepEvents = ({ events }: { readonly events: readonly RoleEvent[] }) =>
  events.flatMap((event) => (event.kind === 'step' ? [event] : []))
