import type { PolicyVersion } from '@trilithon/core'

export interface VersionLease {
  release(): void
}

/**
 * Versions of the weights that the run keeps from being tidied away: the one that serves, for an engine that comes back, and the one that is brought to the engines.
 * The trainer knows neither and goes on: it may be several versions further before an engine opens the folder that it was told.
 */
export class VersionHolds {
  readonly #take: (version: PolicyVersion) => VersionLease | null
  readonly #leases = new Map<PolicyVersion, VersionLease>()
  #served: PolicyVersion | null = null

  /** `take` gives null for a version that is gone. */
  constructor(take: (version: PolicyVersion) => VersionLease | null) {
    this.#take = take
  }

  /** Keeps a version that shall serve, and the one that serves. False where it is gone: then there is a newer one. */
  begin(version: PolicyVersion): boolean {
    if (!this.#leases.has(version)) {
      const lease = this.#take(version)
      if (lease === null) return false
      this.#leases.set(version, lease)
    }
    this.#releaseBut(version, this.#served)
    return true
  }

  /** It serves, and those before are needed no more. */
  served(version: PolicyVersion): void {
    this.#served = version
    this.#releaseBut(version)
  }

  dispose(): void {
    this.#releaseBut()
  }

  #releaseBut(...kept: readonly (PolicyVersion | null)[]): void {
    for (const [version, lease] of this.#leases) {
      if (kept.includes(version)) continue
      lease.release()
      this.#leases.delete(version)
    }
  }
}
