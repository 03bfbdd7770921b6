import { type MicroBatch, type TrainingMode, TrilithonError } from '@trilithon/core'
import { createPackedContext, type Model } from '@trilithon/models'
import {
  type BackwardSeed,
  countZeroGradients,
  fromArray,
  gradientNorm,
  type Optimiser,
  record,
  type Tensor,
  toArray,
} from '@trilithon/tensor'
import type { Loss } from '../loss/loss.ts'
import { LossMetrics } from '../loss/loss-metrics.ts'
import { countLossTokens, lossDenominator, microBatchLoss } from '../loss/micro-batch-loss.ts'
import { ExpertLoad } from './expert-load.ts'
import { RoutingConfidence } from './routing-confidence.ts'
import { type BadSample, samplesOf } from './skipped-samples.ts'

export interface TrainStepParts {
  readonly model: Model
  readonly optimiser: Optimiser
  readonly losses: Readonly<Record<TrainingMode, Loss>>
  /** Gradients of a larger norm are scaled down to it; null leaves them. */
  readonly maxNorm: number | null
  /** Layers are computed again in the backward instead of keeping what they made. */
  readonly recompute: boolean
  /** Weight of the indexers' own loss, a mean over all tokens. The model is made with the same. */
  readonly indexKlWeight: number
}

export interface TrainStepRequest {
  /** All of the step. How they are cut changes no gradient, to rounding. */
  readonly microBatches: readonly MicroBatch[]
  readonly learningRate: number
  /** Policy version that is trained, for metrics by lag. */
  readonly version: number
}

export interface TrainStepReport {
  /** Why the step was not made: nothing has changed then. */
  readonly skipped: { readonly reason: string; readonly samples: readonly BadSample[] } | null
  /** Mean over trained tokens, without the indexers' own. */
  readonly loss: number
  readonly tokens: number
  readonly lossTokens: number
  readonly gradientNorm: number
  /** Under prime-rl's names, where it has one. */
  readonly metrics: Readonly<Record<string, number>>
  /** Rows by expert, by MoE layer. */
  readonly expertLoad: ReadonlyMap<number, Float64Array>
}

/** Sums over the micro-batches of a step. */
interface Accumulated {
  readonly metrics: LossMetrics
  readonly load: ExpertLoad
  readonly confidence: RoutingConfidence
  readonly denominator: number
  readonly indexTokens: number
  loss: number
  indexLoss: number
}

/**
 * One optimiser step: gradients of all micro-batches are added up, clipped as one, and applied. A loss or a gradient that is not finite skips it: no
 * parameter and no state of the optimiser changes, and the samples are handed out. Nothing is left behind, whether it returns or throws.
 */
export function trainStep(parts: TrainStepParts, { microBatches, learningRate, version }: TrainStepRequest): TrainStepReport {
  const { model, optimiser, maxNorm } = parts
  const lossTokens = microBatches.reduce((sum, batch) => sum + countLossTokens(batch), 0)
  const indexTokens = microBatches.reduce((sum, batch) => sum + countTokens(batch), 0)
  const totals: Accumulated = {
    metrics: new LossMetrics(version),
    load: new ExpertLoad(),
    confidence: new RoutingConfidence(),
    denominator: lossDenominator(lossTokens),
    indexTokens: Math.max(1, indexTokens),
    loss: 0,
    indexLoss: 0,
  }
  const report = (skipped: TrainStepReport['skipped'], norm: number, more: Record<string, number> = {}): TrainStepReport => ({
    skipped,
    loss: totals.loss,
    tokens: indexTokens,
    lossTokens,
    gradientNorm: norm,
    metrics: {
      ...totals.metrics.values(),
      ...totals.load.values(),
      ...totals.confidence.values(),
      ...(parts.indexKlWeight > 0 ? { 'index_kl/mean': totals.indexLoss / totals.indexTokens } : {}),
      'optim/lr': learningRate,
      'optim/grad_norm': norm,
      ...more,
    },
    expertLoad: totals.load.counts,
  })
  dropGradients(model)
  try {
    const bad = microBatches.flatMap((batch) => accumulate(parts, batch, totals))
    if (bad.length > 0) return report({ reason: 'the loss is not finite', samples: bad }, Number.NaN)
    const { norm, scale, notFinite } = gradientNorm(model.parameters(), maxNorm)
    if (notFinite > 0 || !Number.isFinite(norm)) {
      const samples = samplesWithBadGradients(parts, microBatches, totals)
      return report({ reason: 'a gradient is not finite', samples }, Number.NaN)
    }
    const { zeros, elements } = countZeroGradients(model.parameters())
    optimiser.step({ learningRate, gradientScale: scale })
    return report(null, norm, { 'optim/zero_grad_ratio': zeros / Math.max(1, elements) })
  } finally {
    dropGradients(model)
  }
}

export function dropGradients(model: Model): void {
  for (const parameter of model.parameters()) parameter.zeroGradient()
}

/** Tokens without padding. */
export function countTokens({ sequenceLengths, sampleIds }: MicroBatch): number {
  return sequenceLengths.reduce((sum, length, index) => sum + (sampleIds[index] === '' ? 0 : length), 0)
}

/**
 * Log-probability and entropy of each token under the model, after its temperature; those of a sequence's first token mean nothing. The tensor `scores`
 * belongs to row i for the token behind it.
 */
export function scoreMicroBatch(
  { model, recompute }: Pick<TrainStepParts, 'model' | 'recompute'>,
  batch: MicroBatch,
): {
  readonly result: ReturnType<Model['forward']>
  readonly scores: Tensor
  readonly logprobs: Float64Array
  readonly entropies: Float64Array
} {
  const context = createPackedContext(batch.sequenceLengths)
  const result = model.forward(batch.inputIds, context, {
    recompute,
    measureRouting: true,
    ...(batch.routedExperts === undefined ? {} : { routes: batch.routedExperts, selectMissing: true }),
  })
  const { logprobs, entropy } = model.score(result.hidden, shiftLeft(batch.inputIds, 0), {
    temperature: shiftLeft(batch.temperatures, 1),
    entropy: true,
  })
  const uniform = Math.log(model.config.vocabSize)
  return {
    result,
    scores: logprobs,
    logprobs: shiftRight(toArray(logprobs) as Float32Array, -uniform),
    entropies: shiftRight(entropy === null ? [] : (toArray(entropy) as Float32Array), uniform),
  }
}

/** Adds the gradients of a micro-batch; those samples whose loss is not finite come back, and then it adds none. */
function accumulate(parts: TrainStepParts, batch: MicroBatch, totals: Accumulated): BadSample[] {
  try {
    return accumulateFinite(parts, batch, totals)
  } catch (error) {
    // Experts and keys cannot be chosen by numbers that are none: the ops say so before there is a loss.
    if (TrilithonError.is(error, 'NATIVE_ARGUMENT_INVALID') && error.details?.expected === 'finite numbers')
      return samplesOf(batch, () => true)
    throw error
  }
}

function accumulateFinite(parts: TrainStepParts, batch: MicroBatch, totals: Accumulated): BadSample[] {
  return record((tape) => {
    const { result, scores, logprobs, entropies } = scoreMicroBatch(parts, batch)
    const loss = microBatchLoss(batch, logprobs, parts.losses[batch.trainingMode], totals.denominator)
    const indexLosses = [...result.indexLosses.values()].map((tensor) => ({ tensor, sum: sumOf(tensor) }))
    const isIndexFinite = indexLosses.every(({ sum }) => Number.isFinite(sum))
    if (loss.notFinite.length > 0 || !isIndexFinite) {
      const ids = loss.notFinite.map(({ sampleId }) => sampleId)
      return samplesOf(batch, isIndexFinite ? (id) => ids.includes(id) : () => true)
    }
    totals.metrics.add(batch, logprobs, entropies, loss)
    totals.load.add(result.expertStarts)
    totals.confidence.add(result.chosenShares, batch.inputIds.length)
    for (const sequence of loss.sequences) totals.loss += sequence.loss
    const seeds: BackwardSeed[] = [{ output: scores, gradient: fromArray(scores.dtype, scores.shape, [...shiftLeft(loss.weights, 0)]) }]
    // An idle copy of another micro-batch trains the indexer no more than it trains anything else.
    const isIdle = batch.sampleIds.every((id) => id === '')
    for (const { tensor, sum } of isIdle ? [] : indexLosses) {
      totals.indexLoss += sum
      const weights = new Array<number>(tensor.elements).fill(parts.indexKlWeight / totals.indexTokens)
      seeds.push({ output: tensor, gradient: fromArray(tensor.dtype, tensor.shape, weights) })
    }
    tape.backward(seeds)
    return []
  })
}

/** Looks for the micro-batches whose own gradient is not finite; all of them where only the sum is not. */
function samplesWithBadGradients(parts: TrainStepParts, batches: readonly MicroBatch[], { denominator, indexTokens }: Accumulated) {
  const found = batches.filter((batch) => {
    dropGradients(parts.model)
    const alone = {
      metrics: new LossMetrics(0),
      load: new ExpertLoad(),
      confidence: new RoutingConfidence(),
      denominator,
      indexTokens,
      loss: 0,
      indexLoss: 0,
    }
    accumulate(parts, batch, alone)
    const { norm, notFinite } = gradientNorm(parts.model.parameters(), null)
    return notFinite > 0 || !Number.isFinite(norm)
  })
  return (found.length > 0 ? found : batches).flatMap((batch) => samplesOf(batch, () => true))
}

/** In the order of the rows. */
function sumOf(tensor: Tensor): number {
  return (toArray(tensor) as Float32Array).reduce((sum, value) => sum + value, 0)
}

/** Entry i is that of the token behind i. */
function shiftLeft(values: ArrayLike<number>, last: number): Float64Array {
  return Float64Array.from({ length: values.length }, (_, index) => values[index + 1] ?? last)
}

/** Entry i is what row i - 1 says of it. */
function shiftRight(values: ArrayLike<number>, first: number): Float64Array {
  return Float64Array.from({ length: values.length }, (_, index) => (index === 0 ? first : (values[index - 1] ?? 0)))
}
