import type { FleetView, FleetWorker, RouteRequest, WorkerId } from '@trilithon/core'
import { type ManualClock, manualClock } from './manual-clock.ts'

/** A fleet that a test changes by hand, with a clock that it advances by hand. */
export interface FakeFleet extends FleetView {
  readonly clock: ManualClock
  /** Adds a worker, or changes one. A new one is idle, ready, serves version 0 alone and can do nothing special. */
  set(id: WorkerId, change?: Partial<Omit<FleetWorker, 'id'>>): void
  remove(id: WorkerId): void
}

/** Workers are viewed in the order in which they were added. */
export function fakeFleet(ids: readonly WorkerId[] = [], clock: ManualClock = manualClock()): FakeFleet {
  const workers = new Map<WorkerId, FleetWorker>()
  const idle = (id: WorkerId): FleetWorker => ({
    id,
    url: `http://${id}.test`,
    role: 'both',
    state: 'ready',
    policyVersion: 0,
    reportedRequests: 0,
    capabilities: new Set(),
  })
  const fleet: FakeFleet = {
    clock,
    workers: () => [...workers.values()],
    nowMs: () => clock.nowMs(),
    set(id, change = {}) {
      workers.set(id, { ...(workers.get(id) ?? idle(id)), ...change })
    },
    remove(id) {
      workers.delete(id)
    },
  }
  for (const id of ids) fleet.set(id)
  return fleet
}

/** A request that any ready worker can serve, but for what is given. */
export function fakeRequest(given: Partial<RouteRequest> = {}): RouteRequest {
  return {
    sessionId: 'session',
    promptTokens: 100,
    salt: 'salt',
    needs: [],
    minPolicyVersion: 0,
    exclude: [],
    leaseMs: 60_000,
    ...given,
  }
}
