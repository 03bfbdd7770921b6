import { writeFileSync } from 'node:fs'
import { TrilithonError } from '@trilithon/core'

interface MeasuredStep {
  readonly tokens: number
  readonly seconds: number
  readonly peakBytes: number
}

/** Figures of a measurement (`bench`): medians over all steps but the first, which warms up. */
export class BenchReport {
  readonly #steps: MeasuredStep[] = []

  take({ tokens, seconds, peakBytes }: MeasuredStep): void {
    this.#steps.push({ tokens, seconds, peakBytes })
  }

  values(): Record<string, number> {
    const measured = this.#steps.length > 1 ? this.#steps.slice(1) : this.#steps
    const median = (value: (step: (typeof measured)[number]) => number) => {
      const sorted = measured.map(value).sort((a, b) => a - b)
      return sorted[Math.floor(sorted.length / 2)] ?? 0
    }
    return {
      steps: measured.length,
      tokens_per_second: median(({ tokens, seconds }) => tokens / seconds),
      seconds_per_step: median(({ seconds }) => seconds),
      peak_memory_gib: Math.max(0, ...this.#steps.map(({ peakBytes }) => peakBytes)) / 2 ** 30,
    }
  }

  /** Throws `OUTPUT_UNUSABLE`. */
  write(path: string): void {
    try {
      writeFileSync(path, `${JSON.stringify(this.values(), null, 2)}\n`)
    } catch (cause) {
      throw new TrilithonError('OUTPUT_UNUSABLE', `${path} cannot be written: ${(cause as Error).message}`, {
        path: 'bench.output_json',
        hint: 'Give a file in a folder that exists.',
        cause,
      })
    }
  }
}
