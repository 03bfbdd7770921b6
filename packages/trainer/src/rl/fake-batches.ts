import type { Sample } from '@trilithon/core'
import type { RlBatch } from './rl-event.ts'

export interface FakeBatchesOptions {
  readonly batchSize: number
  /** Lengths between 2 and `seqLen` instead of that alone. */
  readonly varies: boolean
  readonly seqLen: number
  readonly vocabSize: number
  readonly profile: string
}

/** Made-up batches for measurements: token ids, advantages and log-probabilities follow from the number of the step alone. */
export function fakeBatch(step: number, { batchSize, varies, seqLen, vocabSize, profile }: FakeBatchesOptions): RlBatch {
  let state = (step * 2654435761 + 1) >>> 0
  const next = (below: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
  const samples = Array.from({ length: batchSize }, (_, index): Sample => {
    const length = varies ? 2 + next(seqLen - 1) : seqLen
    const tokens = Uint32Array.from({ length }, () => next(vocabSize))
    const prompt = Math.max(1, Math.floor(length / 4))
    const completion = length - prompt
    const reward = next(2)
    return {
      id: `fake-${step}-${index}`,
      environment: 'fake',
      promptIds: tokens.slice(0, prompt),
      completionIds: tokens.slice(prompt),
      mask: new Uint8Array(completion).fill(1),
      logprobs: new Float32Array(completion).fill(-Math.log(vocabSize)),
      temperatures: new Float32Array(completion).fill(1),
      versions: new Uint32Array(completion).fill(step),
      contextVersionsMin: new Uint32Array(completion).fill(step),
      advantage: reward - 0.5,
      reward,
      trainingMode: 'rl',
      profile,
    }
  })
  return { step, samples }
}
