import type { FleetView, FleetWorker, PolicyVersion, WorkerId } from '@trilithon/core'
import { invariant } from '@trilithon/core'
import type { Clock } from '../run/clock.ts'

export interface EngineAddress {
  /** Where requests go. */
  readonly url: string
  /** Where weights are updated. */
  readonly adminUrl: string
  /** Data ranks behind the URL. */
  readonly ranks: number
}

/** What may change of an engine. */
export interface EngineChange {
  readonly state?: FleetWorker['state']
  readonly policyVersion?: PolicyVersion
  readonly reportedRequests?: number
  readonly capabilities?: ReadonlySet<string>
}

/** The engines of a run, by the URL of their administration; each of their ranks is a worker that the router may choose. */
export class LiveFleet implements FleetView {
  readonly #clock: Clock
  readonly #engines = new Map<string, EngineAddress>()
  readonly #workers = new Map<WorkerId, FleetWorker & { readonly engine: string; readonly rank: number | null }>()
  readonly #listeners = new Set<() => void>()

  constructor(addresses: readonly EngineAddress[], clock: Clock) {
    this.#clock = clock
    for (const address of addresses) {
      const { url, adminUrl, ranks } = address
      this.#engines.set(adminUrl, address)
      for (let rank = 0; rank < ranks; rank++) {
        const id = ranks === 1 ? url : `${url}#${rank}`
        this.#workers.set(id, {
          ...{ id, url, engine: adminUrl, rank: ranks === 1 ? null : rank },
          ...{ role: 'both', state: 'starting', policyVersion: 0, reportedRequests: 0, capabilities: new Set<string>() },
        })
      }
    }
  }

  /** URLs of administration. */
  get engines(): readonly string[] {
    return [...this.#engines.keys()]
  }

  workers(): Iterable<FleetWorker> {
    return this.#workers.values()
  }

  nowMs(): number {
    return this.#clock.nowMs()
  }

  urlOf(worker: WorkerId): string {
    const url = this.#workers.get(worker)?.url
    invariant(url !== undefined, `The router leased ${worker}, which is not in the fleet.`)
    return url
  }

  headersOf(worker: WorkerId): Readonly<Record<string, string>> {
    const rank = this.#workers.get(worker)?.rank ?? null
    return rank === null ? {} : { 'X-data-parallel-rank': String(rank) }
  }

  stateOf(engine: string): FleetWorker['state'] | undefined {
    return this.workersOf(engine)[0]?.state
  }

  workersOf(engine: string): readonly FleetWorker[] {
    return [...this.#workers.values()].filter((worker) => worker.engine === engine)
  }

  change(engine: string, change: EngineChange): void {
    for (const [id, worker] of this.#workers) if (worker.engine === engine) this.#workers.set(id, { ...worker, ...change })
    for (const listener of this.#listeners) listener()
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
