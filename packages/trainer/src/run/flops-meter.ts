import type { MicroBatch } from '@trilithon/core'
import { type ModelConfig, trainingFlops } from '@trilithon/models'
import { measurePeak } from './measure-peak.ts'

export interface FlopsMeterOptions {
  readonly config: ModelConfig
  readonly trainsIndexers: boolean
  /** Operations per second; measured here and now unless it is given. */
  readonly peak?: number
}

/**
 * How much of what this machine can compute goes into the model: `perf/mfu`, in percent as in prime-rl. Counted are the operations of the architecture for the
 * documents of a step (`trainingFlops`), over the time of its forward, backward and optimiser. The peak is measured, not looked up, and is a metric beside it.
 */
export class FlopsMeter {
  readonly #flopsOf: (lengths: Iterable<number>) => number
  readonly #peak: number

  constructor({ config, trainsIndexers, peak = measurePeak() }: FlopsMeterOptions) {
    this.#flopsOf = trainingFlops(config, { trainsIndexers })
    this.#peak = peak
  }

  /** Of a step that took `seconds`. Padding and idle copies are no work. */
  values(microBatches: readonly MicroBatch[], seconds: number): Record<string, number> {
    const lengths = microBatches.flatMap(({ sequenceLengths, sampleIds }) => sequenceLengths.filter((_, index) => sampleIds[index] !== ''))
    const flops = this.#flopsOf(lengths)
    return { 'perf/mfu': (100 * flops) / seconds / this.#peak, 'perf/measured_peak_gflops': this.#peak / 1e9 }
  }
}
