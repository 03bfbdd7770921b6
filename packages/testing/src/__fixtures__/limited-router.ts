import type { FleetView, RouteAnswer, Router, RouteRequest, RouterStats, WorkerId } from '@trilithon/core'
import { TrilithonError } from '@trilithon/core'

/** Answers late, takes the last able worker, claims no capability, and never lets a lease expire: what a filling with a skip looks like. */
export class LimitedRouter implements Router {
  #leases: WorkerId[][] = []
  #disposed = false

  async route(request: RouteRequest, fleet: FleetView): Promise<RouteAnswer> {
    if (this.#disposed) throw new TrilithonError('PLUGIN_DISPOSED', 'disposed')
    const worker = Array.from(fleet.workers())
      .filter(({ role, state, policyVersion }) => role === 'both' && state === 'ready' && policyVersion >= request.minPolicyVersion)
      .filter(({ id, capabilities }) => !request.exclude.includes(id) && request.needs.every((need) => capabilities.has(need)))
      .at(-1)
    if (worker === undefined) return { status: 'wait', reason: 'Nobody can.' }
    const lease = [worker.id]
    this.#leases.push(lease)
    const end = () => {
      this.#leases = this.#leases.filter((other) => other !== lease)
    }
    return { status: 'leased', lease: { worker: worker.id, overlapTokens: 0, headers: {}, end } }
  }

  endSession(): void {}

  stats(fleet: FleetView): RouterStats {
    const present = new Set(Array.from(fleet.workers(), ({ id }) => id))
    this.#leases = this.#leases.filter(([id = '']) => present.has(id))
    const leasesByWorker: Record<WorkerId, number> = {}
    for (const [id = ''] of this.#leases) leasesByWorker[id] = (leasesByWorker[id] ?? 0) + 1
    return { leases: this.#leases.length, sessions: 0, leasesByWorker }
  }

  async dispose(): Promise<void> {
    this.#disposed = true
    this.#leases = []
  }
}
