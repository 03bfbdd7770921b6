import { invariant, type MicroBatch } from '@trilithon/core'
import type { Loss, LossInputs } from './loss.ts'

/** The loss of one sequence of a micro-batch, and its metrics. */
export interface SequenceReport {
  readonly sampleId: string
  readonly environment: string
  readonly begin: number
  readonly length: number
  /** Sum of its terms over the denominator. */
  readonly loss: number
  readonly lossTokens: number
  readonly metrics: Readonly<Record<string, number>>
}

export interface MicroBatchLoss {
  /** Derivative of the batch's loss by the trainer's log-probability of each token: what the backward pass of the LM head starts from. */
  readonly weights: Float64Array
  /** In the order of the batch, so that a sum over them does not depend on how samples were split. */
  readonly sequences: readonly SequenceReport[]
  /** Sequences with a term or a weight that is not finite. Where there is one, no rank may step; they are saved and named. */
  readonly notFinite: readonly SequenceReport[]
}

/** Trained tokens of a micro-batch. */
export function countLossTokens({ mask }: Pick<MicroBatch, 'mask'>): number {
  return mask.reduce((sum, flag) => sum + flag, 0)
}

/** One over all micro-batches of all ranks, so that any split of a batch gives the same gradient: its trained tokens, at least 1. */
export function lossDenominator(lossTokens: number): number {
  return Math.max(1, lossTokens)
}

/**
 * Evaluates a loss on each sequence of a micro-batch. `trainerLogprobs` has one entry per token, of which those behind a sequence's first are
 * meaningful. Adds per token in order, each sequence by itself.
 */
export function microBatchLoss(batch: MicroBatch, trainerLogprobs: ArrayLike<number>, loss: Loss, denominator: number): MicroBatchLoss {
  const total = batch.inputIds.length
  invariant(trainerLogprobs.length === total, `${trainerLogprobs.length} log-probabilities for ${total} tokens`)
  const weights = new Float64Array(total)
  const sequences: SequenceReport[] = []
  const notFinite: SequenceReport[] = []
  let begin = 0
  for (const [index, length] of batch.sequenceLengths.entries()) {
    const inputs = sequenceInputs(batch, trainerLogprobs, begin, length)
    const { losses, gradients, metrics } = loss(inputs)
    let sum = 0
    let hasFinite = true
    let lossTokens = 0
    for (let token = 0; token < length; token++) {
      if (inputs.mask[token] !== 1) continue
      const weight = (gradients[token] ?? 0) / denominator
      sum += losses[token] ?? 0
      hasFinite &&= Number.isFinite(losses[token]) && Number.isFinite(weight)
      weights[begin + token] = weight
      lossTokens++
    }
    const report: SequenceReport = {
      sampleId: batch.sampleIds[index] ?? '',
      environment: batch.environments[index] ?? '',
      begin,
      length,
      loss: sum / denominator,
      lossTokens,
      metrics,
    }
    sequences.push(report)
    if (!hasFinite) notFinite.push(report)
    begin += length
  }
  return { weights, sequences, notFinite }
}

function sequenceInputs(batch: MicroBatch, trainerLogprobs: ArrayLike<number>, begin: number, length: number): LossInputs {
  const cut = (values: ArrayLike<number>) => {
    const sequence = new Float64Array(length)
    for (let token = 0; token < length; token++) sequence[token] = values[begin + token] ?? 0
    return sequence
  }
  return {
    trainerLogprobs: cut(trainerLogprobs),
    inferenceLogprobs: cut(batch.logprobs),
    advantages: cut(batch.advantages),
    mask: batch.mask.subarray(begin, begin + length),
    teacherLogprobs: batch.teacherLogprobs === undefined ? undefined : cut(batch.teacherLogprobs),
  }
}
