import type { Metric, Registry } from 'prom-client'

export interface CountedHistogramOptions {
  readonly name: string
  readonly help: string
  readonly labels: Readonly<Record<string, string>>
  /** Upper bounds, ascending. */
  readonly bounds: readonly number[]
  readonly registry: Registry
}

/** A histogram whose values somebody else has counted already; here it is only told. */
export class CountedHistogram {
  readonly name: string
  readonly #options: CountedHistogramOptions
  #counts: readonly number[] = []
  #sum = 0

  constructor(options: CountedHistogramOptions) {
    this.name = options.name
    this.#options = options
    // What a registry calls of a metric is its name and `get`.
    options.registry.registerMetric(this as unknown as Metric)
  }

  /** Values of at most each bound and above the one before it, then those above the last; and the sum of all. */
  set(counts: readonly number[], sum: number): void {
    this.#counts = counts
    this.#sum = sum
  }

  get() {
    const { name, help, labels, bounds } = this.#options
    let below = 0
    const buckets = [...bounds, '+Inf'].map((le, index) => {
      below += this.#counts[index] ?? 0
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: below }
    })
    const totals = [
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: below },
    ]
    return { name, help, type: 'histogram', aggregator: 'sum', values: [...buckets, ...totals] }
  }
}
