import {
  definePlugin,
  type FleetView,
  type FleetWorker,
  invariant,
  type RouteAnswer,
  type RouteLease,
  type RouteRequest,
  Router,
  type RouterStats,
  TrilithonError,
  type WorkerId,
} from '@trilithon/core'
import { z } from 'zod'
import { DeadlineHeap } from './deadline-heap.ts'
import { RecencyMap } from './recency-map.ts'

/** Where the last turn of a session ran. */
interface Home {
  readonly worker: WorkerId
  readonly prefillWorker: WorkerId | undefined
}

/** What the router keeps of a lease. */
interface LiveLease extends Home {
  readonly deadlineMs: number
  heapIndex: number
}

/** A worker of the view with its live leases, looked up once per decision. */
interface Candidate {
  readonly worker: FleetWorker
  readonly leases: ReadonlySet<LiveLease> | undefined
}

/** The engine's report lags and counts what others sent; the leases are exact and only ours. Whichever is more. */
const loadOf = ({ worker, leases }: Candidate): number => Math.max(worker.reportedRequests, leases?.size ?? 0)

function isLighter(one: Candidate, other: Candidate): boolean {
  const difference = loadOf(one) - loadOf(other)
  return difference < 0 || (difference === 0 && one.worker.id < other.worker.id)
}

/** The embedded engine wants no headers; one frozen object serves every lease. */
const noHeaders: Readonly<Record<string, string>> = Object.freeze({})

/** Why a worker cannot serve a request, as words that follow a number of workers; undefined if it can. */
function findObstacle(worker: FleetWorker, request: RouteRequest): string | undefined {
  if (worker.state !== 'ready') return 'not ready'
  if (request.exclude.includes(worker.id)) return 'excluded'
  if (worker.policyVersion < request.minPolicyVersion) return 'of an older policy version'
  for (const need of request.needs) if (!worker.capabilities.has(need)) return 'without a needed capability'
  return undefined
}

/** The session's own worker where that has the role and can serve the request, else the one with the fewest requests. */
function findBest(
  role: FleetWorker['role'],
  request: RouteRequest,
  view: readonly Candidate[],
  own: WorkerId | undefined,
): Candidate | undefined {
  let best: Candidate | undefined
  for (const candidate of view) {
    const { worker } = candidate
    if (worker.role !== role || findObstacle(worker, request) !== undefined) continue
    if (worker.id === own) return candidate
    if (best === undefined || isLighter(candidate, best)) best = candidate
  }
  return best
}

/** One sentence for `wait`: how many workers there are, and what keeps how many of them from serving. */
function explainWait(view: readonly Candidate[], request: RouteRequest): string {
  if (view.length === 0) return 'The fleet has no workers.'
  const counts = new Map<string, number>()
  for (const { worker } of view) {
    const obstacle = findObstacle(worker, request) ?? `${worker.role} without a partner`
    counts.set(obstacle, (counts.get(obstacle) ?? 0) + 1)
  }
  const parts = Array.from(counts, ([obstacle, count]) => `${count} ${obstacle}`)
  return `None of ${view.length} workers can serve the request: ${parts.join(', ')}.`
}

/**
 * Keeps a session on its worker while that can serve it, and places every other request on the least loaded worker. A fleet of `prefill` and
 * `decode` workers is served by pairs, each half sticky and least loaded by itself.
 *
 * A decision reads the view once, costs O(workers), and needs no clock but the view's. Memory is bounded by the live leases and `maxSessions`.
 */
export class StickyRouter implements Router {
  readonly #maxSessions: number
  readonly #sessions = new RecencyMap<Home>()
  readonly #leases = new DeadlineHeap<LiveLease>()
  /** Live leases by worker; a pair's lease is under both. Workers without any are left out. */
  readonly #leasesByWorker = new Map<WorkerId, Set<LiveLease>>()
  #disposed = false

  constructor(maxSessions: number) {
    this.#maxSessions = maxSessions
  }

  route(request: RouteRequest, fleet: FleetView): RouteAnswer {
    if (this.#disposed)
      throw new TrilithonError('PLUGIN_DISPOSED', 'The sticky router was asked for a worker after it was disposed.', {
        hint: 'Stop the requests before the router is disposed.',
      })
    invariant(request.leaseMs > 0, `A lease must last longer than 0 ms; leaseMs is ${request.leaseMs}.`)
    const nowMs = fleet.nowMs()
    const view = this.#read(fleet, nowMs)
    const home = this.#place(request, view)
    if (home === undefined) return { status: 'wait', reason: explainWait(view, request) }
    this.#remember(request.sessionId, home)
    return { status: 'leased', lease: this.#lease(home, nowMs + request.leaseMs) }
  }

  endSession(sessionId: string): void {
    this.#sessions.delete(sessionId)
  }

  stats(fleet: FleetView): RouterStats {
    this.#read(fleet, fleet.nowMs())
    return {
      leases: this.#leases.size,
      sessions: this.#sessions.size,
      leasesByWorker: Object.fromEntries(Array.from(this.#leasesByWorker, ([id, leases]) => [id, leases.size])),
    }
  }

  async dispose(): Promise<void> {
    this.#disposed = true
    this.#sessions.clear()
    this.#leases.clear()
    this.#leasesByWorker.clear()
  }

  /** Reads the view, and drops the leases that have expired and those of workers that are not in it any more. */
  #read(fleet: FleetView, nowMs: number): readonly Candidate[] {
    for (let lease = this.#leases.takeExpired(nowMs); lease !== undefined; lease = this.#leases.takeExpired(nowMs)) this.#end(lease)

    const view: Candidate[] = []
    let present = 0
    for (const worker of fleet.workers()) {
      const leases = this.#leasesByWorker.get(worker.id)
      if (leases !== undefined) present++
      view.push({ worker, leases })
    }
    if (present < this.#leasesByWorker.size) this.#dropAbsent(new Set(view.map(({ worker }) => worker.id)))
    return view
  }

  #dropAbsent(present: ReadonlySet<WorkerId>): void {
    for (const [id, leases] of this.#leasesByWorker) {
      if (present.has(id)) continue
      this.#leasesByWorker.delete(id)
      // Without its prefill worker a pair's lease counts on: the decode worker still runs the request.
      for (const lease of leases) if (lease.worker === id) this.#end(lease)
    }
  }

  #place(request: RouteRequest, view: readonly Candidate[]): Home | undefined {
    const home = this.#sessions.peek(request.sessionId)
    const alone = findBest('both', request, view, home?.worker)
    const decode = findBest('decode', request, view, home?.worker)
    const prefill = decode === undefined ? undefined : findBest('prefill', request, view, home?.prefillWorker)
    const pair = decode && prefill && { worker: decode.worker.id, prefillWorker: prefill.worker.id }
    if (alone === undefined) return pair
    const single = { worker: alone.worker.id, prefillWorker: undefined }
    if (pair === undefined || decode === undefined || single.worker === home?.worker) return single
    return pair.worker === home?.worker || isLighter(decode, alone) ? pair : single
  }

  #remember(sessionId: string, home: Home): void {
    this.#sessions.use(sessionId, home)
    for (const [oldest] of this.#sessions) {
      if (this.#sessions.size <= this.#maxSessions) return
      this.#sessions.delete(oldest)
    }
  }

  #lease({ worker, prefillWorker }: Home, deadlineMs: number): RouteLease {
    const lease: LiveLease = { worker, prefillWorker, deadlineMs, heapIndex: -1 }
    this.#leases.push(lease)
    this.#count(worker, lease)
    if (prefillWorker !== undefined) this.#count(prefillWorker, lease)
    return {
      worker,
      ...(prefillWorker === undefined ? {} : { prefillWorker }),
      overlapTokens: 0,
      headers: noHeaders,
      end: () => this.#end(lease),
    }
  }

  #count(id: WorkerId, lease: LiveLease): void {
    const leases = this.#leasesByWorker.get(id)
    if (leases === undefined) this.#leasesByWorker.set(id, new Set([lease]))
    else leases.add(lease)
  }

  /** Does nothing for a lease that has ended, expired or lost its worker. */
  #end(lease: LiveLease): void {
    this.#leases.remove(lease)
    this.#uncount(lease.worker, lease)
    if (lease.prefillWorker !== undefined) this.#uncount(lease.prefillWorker, lease)
  }

  #uncount(id: WorkerId, lease: LiveLease): void {
    const leases = this.#leasesByWorker.get(id)
    if (leases?.delete(lease) === true && leases.size === 0) this.#leasesByWorker.delete(id)
  }
}

const keys = z.strictObject({
  max_sessions: z
    .number()
    .int()
    .positive()
    .default(100_000)
    .describe(
      'Sessions (episodes) that are remembered. Beyond it the one that was routed longest ago is forgotten: its next turn is placed like a new session.',
    ),
})

/** The built-in `Router`: `[orchestrator.router] type = "sticky"`. */
export const stickyRouter = definePlugin({
  name: '@trilithon/builtin/sticky-router',
  fills: Router,
  claims: [{ at: 'orchestrator.router', type: 'sticky', keys }],
  capabilities: { sticky: true, least_loaded: true, prefill_decode: true },
  create: ({ config }) => new StickyRouter((config['orchestrator.router'] ?? keys.parse({})).max_sessions),
})
