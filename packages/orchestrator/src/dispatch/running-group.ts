import type { PolicyVersion, RouteLease, WorkerId } from '@trilithon/core'
import type { EpisodeResult } from '@trilithon/environments'
import type { GroupPlan } from './group-plan.ts'

/** Episodes that run as one call of a pool: a single one, or all of a group whose environment scores groups. */
export interface Flight {
  readonly group: RunningGroup
  /** Numbers of the episodes within the group. */
  readonly indices: readonly number[]
  /** Engines that have failed it. */
  readonly exclude: WorkerId[]
  /** The attempt that runs now. */
  controller: AbortController
  leases: readonly RouteLease[]
  version: PolicyVersion
  /** Of the clock. */
  startedMs: number
  /** Oldest version that sampled a token of it, as far as it was told; Infinity before that. */
  sampled: PolicyVersion
  /** Set when its engine failed: what comes back is no result. */
  isLost: boolean
  /** Settles when the environment has acknowledged the end. */
  ended: Promise<void>
}

/** A group that the dispatcher works on. */
export class RunningGroup {
  readonly plan: GroupPlan
  /** Version that served when its first episode was started; the salt of all of them. */
  version: PolicyVersion = 0
  /** Episodes that were given to an environment, or wait to be given again. */
  scheduled = 0
  arrived = 0
  /** Of those that arrived, the ones with an error. */
  failed = 0
  isCancelled = false
  readonly flights = new Set<Flight>()
  #oldestFinished: PolicyVersion = Number.POSITIVE_INFINITY

  constructor(plan: GroupPlan) {
    this.plan = plan
  }

  /** Episodes that its next call of a pool has. */
  get unit(): number {
    return this.plan.environment.pool.scoring === 'group' ? this.plan.size : 1
  }

  get isScheduled(): boolean {
    return this.scheduled >= this.plan.size
  }

  get rolloutIds(): readonly string[] {
    return Array.from({ length: this.plan.size }, (_, index) => rolloutIdOf(this.plan.id, index))
  }

  /** Oldest version that sampled a token of it, or that may do so; Infinity where nothing was started. */
  get oldest(): PolicyVersion {
    let oldest = this.#oldestFinished
    for (const { sampled, version } of this.flights)
      oldest = Math.min(oldest, sampled, sampled === Number.POSITIVE_INFINITY ? version : sampled)
    return oldest
  }

  arrive(result: EpisodeResult): void {
    this.arrived++
    if (result.error !== undefined) this.failed++
    else this.#oldestFinished = Math.min(this.#oldestFinished, oldestOf(result.turns))
  }
}

export const rolloutIdOf = (groupId: string, index: number): string => `${groupId}.${index}`

/** Oldest version that sampled a token of these turns. */
export function oldestOf(turns: readonly { readonly versions: Uint32Array }[]): PolicyVersion {
  let oldest = Number.POSITIVE_INFINITY
  for (const { versions } of turns) for (const version of versions) if (version < oldest) oldest = version
  return oldest
}
