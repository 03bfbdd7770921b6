import { lagOf, type Sample } from '@trilithon/core'
import type { ModelConfig } from '@trilithon/models'
import { z } from 'zod'
import { sampleInvalid } from '../packing/prepare-sample.ts'

export interface SampleGateOptions {
  readonly profile: string
  /** Versions that the oldest token of a sample may lag behind the one that is trained. */
  readonly maxLag: number
  /** Longer samples are cut to it. */
  readonly seqLen: number
  readonly model: Pick<ModelConfig, 'vocabSize' | 'maxPositions'>
}

/** What a gate remembers, as a checkpoint has it: ids by the batch that trained them, rising. */
export const GateMemory = z.array(z.tuple([z.int().nonnegative(), z.array(z.string())]))
export type GateMemory = z.infer<typeof GateMemory>

/**
 * Checks what the orchestrator promises of each sample: the numerics profile of the run, a lag within the bound, versions that can be, and that it was not
 * trained before. It remembers the ids of as many batches as the bound admits: an older sample is refused for its age.
 */
export class SampleGate {
  readonly #options: SampleGateOptions
  readonly #trained = new Map<string, number>()
  #batches: [number, string[]][] = []

  constructor(options: SampleGateOptions) {
    this.#options = options
  }

  get memory(): GateMemory {
    return this.#batches
  }

  remember(memory: GateMemory): void {
    for (const [step, ids] of memory) this.#note(step, ids)
  }

  /** The lags of the samples of batch `step`. Throws `SAMPLE_INVALID` for the first that may not be trained. */
  check(step: number, samples: readonly Sample[]): number[] {
    return samples.map((sample) => {
      const fault = this.#findFault(step, sample)
      if (fault !== undefined) throw sampleInvalid(sample.id, fault)
      return lagOf(step, sample.versions, sample.mask)
    })
  }

  /** The batch was trained: its samples may not come again. */
  note(step: number, samples: readonly Sample[]): void {
    this.#note(
      step,
      samples.map(({ id }) => id),
    )
  }

  #note(step: number, ids: readonly string[]): void {
    this.#batches.push([step, [...ids]])
    for (const id of ids) this.#trained.set(id, step)
    while ((this.#batches[0]?.[0] ?? step) < step - this.#options.maxLag) {
      const [, old = []] = this.#batches.shift() ?? []
      for (const id of old) this.#trained.delete(id)
    }
  }

  #findFault(step: number, { id, profile, promptIds, completionIds, mask, versions, contextVersionsMin }: Sample): string | undefined {
    const { profile: wanted, maxLag, seqLen, model } = this.#options
    if (profile !== wanted) return `its log-probabilities were computed under the profile ${profile}, and the run has ${wanted}`
    const before = this.#trained.get(id)
    if (before !== undefined) return `it was trained in step ${before}`
    for (let token = 0; token < versions.length; token++) {
      if (mask[token] !== 1) continue
      const [version = 0, context = 0] = [versions[token], contextVersionsMin[token]]
      if (version > step) return `token ${token} was sampled by version ${version}, and step ${step} trains version ${step}`
      if (context > version) return `token ${token} of version ${version} has a context of version ${context}`
    }
    const lag = lagOf(step, versions, mask)
    if (lag > maxLag) return `it lags ${lag} versions behind step ${step}, and max_off_policy_steps is ${maxLag}`
    const length = Math.min(seqLen, promptIds.length + completionIds.length)
    if (length > model.maxPositions) return `it has ${length} tokens, and the model positions for ${model.maxPositions}`
    const foreign = promptIds.find(isForeign) ?? completionIds.find(isForeign)
    return foreign === undefined ? undefined : `it has the token ${foreign}, and the model ${model.vocabSize}`

    function isForeign(token: number): boolean {
      return token >= model.vocabSize
    }
  }
}
