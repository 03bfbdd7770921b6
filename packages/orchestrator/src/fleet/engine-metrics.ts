import type { Logger } from '@trilithon/core'
import type { Clock } from '../run/clock.ts'
import type { EngineAdmin, EngineLoad } from './engine-admin.ts'
import type { LiveFleet } from './live-fleet.ts'

export interface EngineMetricsOptions {
  readonly admin: EngineAdmin
  readonly fleet: LiveFleet
  readonly clock: Clock
  readonly log: Logger
  /** Told of every look, of the engines that answered. */
  readonly onLoads?: (loads: readonly EngineLoad[]) => void
}

const intervalMs = 5000

/** Reads the load of the engines: for metrics, and for the router, which otherwise knows only its own leases. An engine that does not tell is no failure. */
export class EngineMetrics {
  readonly #options: EngineMetricsOptions
  #loads: readonly EngineLoad[] = []
  /** Sums of the counters now and at the look before, with its time. */
  #counted: Counted | undefined
  #rates: Readonly<Record<string, number>> = {}
  #isTold = false

  constructor(options: EngineMetricsOptions) {
    this.#options = options
  }

  /** Under prime-rl's names. */
  get values(): Readonly<Record<string, number>> {
    if (this.#loads.length === 0) return {}
    const sum = (of: (load: EngineLoad) => number) => this.#loads.reduce((total, load) => total + of(load), 0)
    return {
      'inference/agg/running_requests': sum(({ running }) => running),
      'inference/agg/waiting_requests': sum(({ waiting }) => waiting),
      'inference/agg/running_imbalance': imbalance(this.#loads.map(({ running }) => running)),
      'inference/agg/waiting_imbalance': imbalance(this.#loads.map(({ waiting }) => waiting)),
      ...this.#rates,
      'inference/agg/kv_cache_usage_mean': sum(({ kvUsage }) => kvUsage) / this.#loads.length,
      'inference/agg/kv_cache_usage_max': Math.max(...this.#loads.map(({ kvUsage }) => kvUsage)),
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    const { admin, fleet, clock, log } = this.#options
    while (!signal.aborted) {
      const loads: EngineLoad[] = []
      for (const engine of fleet.engines.filter((one) => fleet.stateOf(one) !== 'failed')) {
        try {
          const load = await admin.load(engine)
          loads.push(load)
          const ranks = Math.max(1, fleet.workersOf(engine).length)
          fleet.change(engine, { reportedRequests: Math.ceil((load.running + load.waiting) / ranks) })
        } catch (error) {
          if (!this.#isTold) log.warn('the metrics of an engine cannot be read', { engine, error })
          this.#isTold = true
        }
      }
      this.#loads = loads
      this.#count(loads, clock.nowMs())
      this.#options.onLoads?.(loads)
      await clock.sleep(intervalMs, signal)
    }
  }

  /** Rates since the look before; an engine that came, went or began again makes none. */
  #count(loads: readonly EngineLoad[], nowMs: number): void {
    const sum = (of: (load: EngineLoad) => number) => loads.reduce((total, load) => total + of(load), 0)
    const now: Counted = {
      ...{ nowMs, engines: loads.length, generated: sum(({ generatedTokens }) => generatedTokens) },
      ...{ queries: sum(({ prefixQueries }) => prefixQueries), hits: sum(({ prefixHits }) => prefixHits) },
    }
    const before = this.#counted
    this.#counted = now
    this.#rates = {}
    if (before === undefined || before.engines !== now.engines || now.generated < before.generated || nowMs <= before.nowMs) return
    const queries = now.queries - before.queries
    this.#rates = {
      'inference/agg/throughput': (1000 * (now.generated - before.generated)) / (nowMs - before.nowMs),
      ...(queries > 0 ? { 'inference/agg/prefix_cache_hit_rate': (now.hits - before.hits) / queries } : {}),
    }
  }
}

interface Counted {
  readonly nowMs: number
  readonly engines: number
  readonly generated: number
  readonly queries: number
  readonly hits: number
}

/** How much more the busiest engine has than the mean, as a share of the mean: 0 where all have the same. */
function imbalance(values: readonly number[]): number {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  return mean === 0 ? 0 : Math.max(...values) / mean - 1
}
