import {
  type FleetView,
  type FleetWorker,
  type RouteAnswer,
  type RouteRequest,
  type Router,
  type RouterStats,
  TrilithonError,
  type WorkerId,
} from '@trilithon/core'

/** What the router keeps of a lease. */
interface LiveLease {
  readonly worker: WorkerId
  readonly deadlineMs: number
}

/** R1, R3, R4 and R5 of the contract. A worker of a pair is not for us: we do not claim `prefill_decode`. */
function canServe(worker: FleetWorker, request: RouteRequest): boolean {
  return (
    worker.state === 'ready' &&
    worker.role === 'both' &&
    !request.exclude.includes(worker.id) &&
    request.needs.every((need) => worker.capabilities.has(need)) &&
    worker.policyVersion >= request.minPolicyVersion
  )
}

/**
 * Gives each request to the worker after the last one, in the order of their ids, and no worker more than `maxLeasesPerWorker` at once.
 *
 * A decision reads all live leases. That is quick for some thousands; the built-in router shows how to do better.
 */
export class RoundRobinRouter implements Router {
  readonly #maxLeasesPerWorker: number
  readonly #live = new Set<LiveLease>()
  #last: WorkerId | undefined
  #disposed = false

  constructor(maxLeasesPerWorker: number) {
    this.#maxLeasesPerWorker = maxLeasesPerWorker
  }

  route(request: RouteRequest, fleet: FleetView): RouteAnswer {
    if (this.#disposed)
      throw new TrilithonError('PLUGIN_DISPOSED', 'The round-robin router was asked for a worker after it was disposed.', {
        hint: 'Stop the requests before the router is disposed.',
      })
    const workers = [...fleet.workers()]
    const counts = this.#settle(workers, fleet.nowMs())
    const able = workers.filter((worker) => canServe(worker, request))
    const free = able
      .map(({ id }) => id)
      .filter((id) => (counts.get(id) ?? 0) < this.#maxLeasesPerWorker)
      .sort()
    const worker = free.find((id) => this.#last !== undefined && id > this.#last) ?? free[0]
    if (worker === undefined) return { status: 'wait', reason: this.#explainWait(workers.length, able.length) }

    this.#last = worker
    const lease: LiveLease = { worker, deadlineMs: fleet.nowMs() + request.leaseMs }
    this.#live.add(lease)
    return { status: 'leased', lease: { worker, overlapTokens: 0, headers: {}, end: () => void this.#live.delete(lease) } }
  }

  endSession(): void {
    // Sessions are not remembered: every turn is placed anew.
  }

  stats(fleet: FleetView): RouterStats {
    const counts = this.#settle([...fleet.workers()], fleet.nowMs())
    return { leases: this.#live.size, sessions: 0, leasesByWorker: Object.fromEntries(counts) }
  }

  async dispose(): Promise<void> {
    this.#disposed = true
    this.#live.clear()
  }

  /** Drops leases that have expired (R7) and those of workers that have left (R8); counts the rest by worker. */
  #settle(workers: readonly FleetWorker[], nowMs: number): Map<WorkerId, number> {
    const present = new Set(workers.map(({ id }) => id))
    const counts = new Map<WorkerId, number>()
    for (const lease of this.#live) {
      if (lease.deadlineMs <= nowMs || !present.has(lease.worker)) this.#live.delete(lease)
      else counts.set(lease.worker, (counts.get(lease.worker) ?? 0) + 1)
    }
    return counts
  }

  #explainWait(all: number, able: number): string {
    if (able === 0) return `None of ${all} workers can serve the request.`
    return `Each of the ${able} workers that can serve the request has ${this.#maxLeasesPerWorker} leases already.`
  }
}
