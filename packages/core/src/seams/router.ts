import type { PolicyVersion } from '../data/policy-version.ts'
import { type Disposable, defineSeam } from '../seam.ts'

/** Stable name of one engine rank: its URL and data-parallel rank, as the fleet chose it. */
export type WorkerId = string

/** One engine rank as the fleet sees it now. The router reads it and never changes it. */
export interface FleetWorker {
  readonly id: WorkerId
  readonly url: string
  /** `both` serves a request alone; otherwise a prefill and a decode worker share it. */
  readonly role: 'both' | 'prefill' | 'decode'
  readonly state: 'starting' | 'ready' | 'paused' | 'draining' | 'failed'
  readonly policyVersion: PolicyVersion
  /** Requests running or waiting that the engine last reported, whoever sent them. */
  readonly reportedRequests: number
  /** What the engine can do, as `routed_experts`. */
  readonly capabilities: ReadonlySet<string>
}

/** A live view: reading it twice may give different answers, because workers come, pause and go. */
export interface FleetView {
  workers(): Iterable<FleetWorker>
  /** Monotonic milliseconds; a test advances it by hand. */
  nowMs(): number
}

export interface RouteRequest {
  /** Turns of one episode share it; so does their KV. */
  readonly sessionId: string
  /** Episodes of one task share the prompt of their first turn. */
  readonly groupId?: string
  readonly promptTokens: number
  readonly expectedOutputTokens?: number
  /** Chain of 32-byte block hashes of the prompt, where the caller has it. */
  readonly blockHashes?: readonly Uint8Array[]
  readonly salt: string
  /** Capabilities that the worker must have. */
  readonly needs: readonly string[]
  /** The worker must serve this version or a newer one. */
  readonly minPolicyVersion: PolicyVersion
  /** Workers that have failed this request. */
  readonly exclude: readonly WorkerId[]
  /** The lease ends by itself this long after it was given. */
  readonly leaseMs: number
}

/** How a leased request ended. */
export interface LeaseOutcome {
  readonly ok: boolean
  readonly outputTokens?: number
  readonly cachedTokens?: number
  readonly error?: string
}

/** A reservation of a worker for one request. It counts as load until `end` or its deadline. */
export interface RouteLease {
  readonly worker: WorkerId
  /** Set where prefill and decode are split; `worker` decodes then. */
  readonly prefillWorker?: WorkerId
  /** Tokens of the prompt believed to be cached there; 0 where nothing is known. */
  readonly overlapTokens: number
  /** Headers that the request must carry. */
  readonly headers: Readonly<Record<string, string>>
  end(outcome: LeaseOutcome): void
}

/** `wait`: nobody can serve it now but somebody may later; `reason` is one sentence for logs and metrics. */
export type RouteAnswer = { readonly status: 'leased'; readonly lease: RouteLease } | { readonly status: 'wait'; readonly reason: string }

export interface RouterStats {
  /** Leases that have neither ended nor expired. */
  readonly leases: number
  /** Sessions that the router remembers. */
  readonly sessions: number
  /** Live leases by worker, a pair's lease under both; workers without any left out. */
  readonly leasesByWorker: Readonly<Record<WorkerId, number>>
}

/**
 * Chooses the engine for each request. Thread: main. Called once per turn, so a decision should cost microseconds.
 *
 * Contract:
 * - R1 A lease names a worker of the fleet view whose state is `ready` and whose role is `both`; or a ready `decode` worker together
 *   with a ready `prefill` worker.
 * - R2 Where no worker can serve the request, the answer is `wait` with a sentence; `route` does not throw for it. Where an idle one can, the
 *   answer is `leased`.
 * - R3 A worker in `exclude` is never leased.
 * - R4 A leased worker (both of a pair) has every capability in `needs`.
 * - R5 A leased worker (both of a pair) serves `minPolicyVersion` or newer.
 * - R6 A lease counts in `stats` until it ends; ending it twice is ending it once.
 * - R7 A lease that was not ended expires `leaseMs` after it was given, and may be ended afterwards without effect.
 * - R8 A worker that disappears from the view loses its leases in `stats`; ending them afterwards has no effect. A pair's lease goes with its
 *   decode worker; without its prefill worker it counts on.
 * - R9 The same calls on the same views give the same answers: no clock but the view's, no randomness.
 * - R10 `endSession` forgets the session and not its leases; an unknown session is no error.
 * - R11 After `dispose`, `route` throws `PLUGIN_DISPOSED`, `end` and `endSession` do nothing, `stats` counts nothing.
 *
 * By capability (`capabilities` of the plugin):
 * - R12 `sticky`: a session stays on the worker of its last lease, and on the prefill worker, while R1 to R5 allow it, whatever the load.
 * - R13 `least_loaded`: a session that is new or has to move goes to a worker with the fewest requests (reported ones or live leases,
 *   whichever is more); ties to the lower id. A prefill worker is chosen likewise. So n new sessions over k idle workers differ by at most one.
 * - R14 `prefill_decode`: a fleet of `prefill` and `decode` workers is served by pairs. Without it such a fleet is answered with `wait`.
 */
export interface Router extends Disposable {
  route(request: RouteRequest, fleet: FleetView): RouteAnswer | Promise<RouteAnswer>
  endSession(sessionId: string): void
  stats(fleet: FleetView): RouterStats
}

export const Router = defineSeam<Router>({ id: 'router', version: 1, cardinality: 'one', thread: 'main', runsIn: ['orchestrator'] })
