import type { MicroBatch } from '@trilithon/core'
import type { MicroBatchLoss } from './micro-batch-loss.ts'
import { mismatchKl } from './policy-loss.ts'

export interface Statistics {
  readonly mean: number
  readonly median: number
  readonly std: number
  readonly min: number
  readonly max: number
}

/** Of at least one value; the standard deviation is that of the values themselves, not an estimate. */
export function summarise(values: readonly number[]): Statistics {
  const sorted = Float64Array.from(values).sort()
  const count = sorted.length
  const mean = sorted.reduce((sum, value) => sum + value, 0) / count
  const variance = sorted.reduce((sum, value) => sum + (value - mean) ** 2, 0) / count
  const middle = ((sorted[Math.floor((count - 1) / 2)] ?? 0) + (sorted[Math.floor(count / 2)] ?? 0)) / 2
  return { mean, median: middle, std: Math.sqrt(variance), min: sorted[0] ?? 0, max: sorted.at(-1) ?? 0 }
}

/** Statistics that are published of a family of values; all of them where it is not named. */
const published: Readonly<Record<string, readonly (keyof Statistics)[]>> = {
  loss: ['mean', 'median', 'std', 'min', 'max'],
  'entropy/all': ['mean', 'max', 'std'],
  'mismatch_kl/all': ['mean', 'max'],
}
const perEnvironment: readonly (keyof Statistics)[] = ['mean', 'std', 'max']
const perSequence: readonly (keyof Statistics)[] = ['mean', 'max']

/**
 * Collects a step's loss, entropy and mismatch between trainer and sampler, over trained tokens, under prime-rl's names (`mismatch_kl/all/mean`). The
 * mismatch is also given by lag (`mismatch_kl/lag_1/mean`, `tokens/lag_1`): the version that is trained minus the oldest that sampled the token or computed a key of
 * it. Tokens at lag 0 are exact: trainer and engine computed them from the same weights, so `mismatch_kl/exact/max`, their largest difference of
 * log-probabilities, is 0; `tokens/exact` counts them.
 */
export class LossMetrics {
  readonly #trainedVersion: number
  readonly #values = new Map<string, number[]>()
  /** Trained tokens that were sampled, by lag. */
  readonly #byLag = new Map<number, number>()
  #largestExact = 0

  constructor(trainedVersion: number) {
    this.#trainedVersion = trainedVersion
  }

  /** `entropies` has one entry per token, in nats. */
  add(batch: MicroBatch, trainerLogprobs: ArrayLike<number>, entropies: ArrayLike<number>, { sequences }: MicroBatchLoss): void {
    const trained = sequences.filter(({ lossTokens }) => lossTokens > 0)
    // The loss is per micro-batch; one that trains nothing (a copy for balance) says nothing.
    if (trained.length > 0)
      this.#push(
        'loss',
        trained.reduce((sum, { loss }) => sum + loss, 0),
      )
    for (const { begin, length, environment, metrics } of trained) {
      for (const [name, value] of Object.entries(metrics)) if (name !== 'mismatch_kl') this.#push(name, value)
      for (let token = begin; token < begin + length; token++) {
        if (batch.mask[token] !== 1) continue
        this.#pushFor('entropy', environment, entropies[token] ?? 0)
        if (batch.trainingMode === 'sft') continue
        const kl = mismatchKl(trainerLogprobs[token] ?? 0, batch.logprobs[token] ?? 0)
        this.#pushFor('mismatch_kl', environment, kl)
        const oldest = Math.min(batch.versions[token] ?? 0, batch.contextVersionsMin[token] ?? 0)
        const lag = this.#trainedVersion - oldest
        this.#push(`mismatch_kl/lag_${lag}`, kl)
        this.#byLag.set(lag, (this.#byLag.get(lag) ?? 0) + 1)
        const difference = Math.abs((trainerLogprobs[token] ?? 0) - (batch.logprobs[token] ?? 0))
        if (lag === 0) this.#largestExact = Math.max(this.#largestExact, difference)
      }
    }
  }

  values(): Record<string, number> {
    const result: Record<string, number> = {}
    for (const [name, values] of [...this.#values].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      const statistics = summarise(values)
      for (const kind of published[name] ?? (name.includes('/') ? perEnvironment : perSequence))
        result[`${name}/${kind}`] = statistics[kind]
    }
    const entropy = result['entropy/all/mean']
    const kl = result['mismatch_kl/all/mean']
    if (this.#byLag.size > 0) {
      const exact = this.#byLag.get(0) ?? 0
      result['tokens/exact'] = exact
      // Without a token there is no agreement to speak of.
      if (exact > 0) result['mismatch_kl/exact/max'] = this.#largestExact
      for (const [lag, tokens] of [...this.#byLag].toSorted(([a], [b]) => a - b)) result[`tokens/lag_${lag}`] = tokens
    }
    if (entropy !== undefined && entropy > 0 && kl !== undefined) result['kl_ent_ratio/mean'] = kl / entropy
    return result
  }

  #pushFor(family: string, environment: string, value: number): void {
    this.#push(`${family}/all`, value)
    if (environment !== '') this.#push(`${family}/${environment}`, value)
  }

  #push(name: string, value: number): void {
    const values = this.#values.get(name)
    if (values === undefined) this.#values.set(name, [value])
    else values.push(value)
  }
}
