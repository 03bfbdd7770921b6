import { invariant, type MicroBatch, type Sample } from '@trilithon/core'
import { assembleMicroBatch, idleCopy } from './micro-batch.ts'
import { type CostCoefficients, packingCost, tokenCost } from './packing-cost.ts'
import { partitionEvenly } from './partition.ts'
import { type PreparedSample, prepareSample, sampleInvalid } from './prepare-sample.ts'

export interface PrepareBatchOptions {
  /** Tokens of a micro-batch at most; longer samples are cut. */
  readonly seqLen: number
  /** Data ranks: the world divided by cp. */
  readonly workers: number
  /** Micro-batches are padded to a multiple of this many tokens: cp. */
  readonly padToMultipleOf?: number
  readonly cost?: CostCoefficients
}

/**
 * Packs a batch for RL: for each data rank its micro-batches, equally many, in the order in which they are trained. Longest first into the first bin with
 * room; the dearest bins are split until every rank has one; what is still missing are copies that train nothing. Each sample is in exactly one
 * micro-batch. Throws `SAMPLE_INVALID`.
 */
export function prepareBatch(
  samples: readonly Sample[],
  { seqLen, workers, padToMultipleOf = 1, cost = tokenCost }: PrepareBatchOptions,
): MicroBatch[][] {
  invariant(seqLen >= 1 && workers >= 1 && padToMultipleOf >= 1, `no packing of ${seqLen} tokens for ${workers} ranks`)
  const prepared = samples.map((sample) => prepareSample(sample, seqLen))
  refuseBatch(prepared)
  // Stable: equal lengths stay in the order of the batch.
  const bins = fillBins(
    prepared.toSorted((a, b) => lengthOf(b) - lengthOf(a)),
    seqLen,
  )
  const split = workers > 1 ? splitBins(bins, roundUp(bins.length, workers), cost) : bins
  const batches = split.map((bin) => assembleMicroBatch(bin, padToMultipleOf))
  const [first] = batches
  invariant(first !== undefined, 'a batch that is not empty has a micro-batch')
  while (batches.length % workers !== 0) batches.push(idleCopy(first))
  const costs = batches.map(({ sequenceLengths }) => packingCost(sequenceLengths, cost))
  return partitionEvenly(costs, workers).map((indices) => indices.flatMap((index) => batches[index] ?? []))
}

const lengthOf = ({ inputIds }: PreparedSample) => inputIds.length
const roundUp = (count: number, multiple: number) => Math.ceil(count / multiple) * multiple

function refuseBatch(samples: readonly PreparedSample[]): void {
  const [first] = samples
  if (first === undefined) throw sampleInvalid('(none)', 'the batch is empty')
  const like = samples.find((sample) => sample.routedExperts !== undefined)?.routedExperts
  const seen = new Set<string>()
  for (const { id, profile, routedExperts } of samples) {
    if (seen.has(id)) throw sampleInvalid(id, 'it is in the batch twice')
    seen.add(id)
    if (profile !== first.profile) throw sampleInvalid(id, `its profile is ${profile}, that of ${first.id} is ${first.profile}`)
    if (routedExperts !== undefined && like !== undefined && rowLayout(routedExperts) !== rowLayout(like))
      throw sampleInvalid(id, `its routed experts are ${rowLayout(routedExperts)} a row, others of the batch ${rowLayout(like)}`)
  }
}

const rowLayout = ({ shape, dtype }: { readonly shape: readonly number[]; readonly dtype: string }) =>
  `${shape.slice(1).join(' x ')} ${dtype}`

/** What may be in one micro-batch: one loss, and routed experts for all or for none. */
function fitsTogether(a: PreparedSample, b: PreparedSample): boolean {
  return (
    a.trainingMode === b.trainingMode &&
    (a.routedExperts === undefined) === (b.routedExperts === undefined) &&
    (a.teacherLogprobs === undefined) === (b.teacherLogprobs === undefined)
  )
}

/** First fit: each sample into the first bin that has room and the same kind. */
function fillBins(samples: readonly PreparedSample[], seqLen: number): PreparedSample[][] {
  const bins: { readonly samples: PreparedSample[]; tokens: number }[] = []
  for (const sample of samples) {
    const length = lengthOf(sample)
    const bin = bins.find(({ samples: [first], tokens }) => tokens + length <= seqLen && first !== undefined && fitsTogether(first, sample))
    if (bin === undefined) bins.push({ samples: [sample], tokens: length })
    else {
      bin.samples.push(sample)
      bin.tokens += length
    }
  }
  return bins.map((bin) => bin.samples)
}

/** Splits the dearest bin with several samples in two, until there are `target` bins or no such bin is left. */
function splitBins(given: readonly PreparedSample[][], target: number, cost: CostCoefficients): PreparedSample[][] {
  const bins = given.map((samples) => ({ samples, cost: packingCost(samples.map(lengthOf), cost) }))
  while (bins.length < target) {
    let dearest: (typeof bins)[number] | undefined
    for (const bin of bins) if (bin.samples.length > 1 && bin.cost > (dearest?.cost ?? Number.NEGATIVE_INFINITY)) dearest = bin
    if (dearest === undefined) break
    const [heavy, light] = halve(dearest.samples, cost)
    bins.splice(bins.indexOf(dearest), 1, heavy)
    bins.push(light)
  }
  return bins.map(({ samples }) => samples)
}

/** Longest processing time first: the heaviest sample to the lighter side. */
function halve(samples: readonly PreparedSample[], cost: CostCoefficients) {
  const weigh = (sample: PreparedSample) => packingCost([lengthOf(sample)], cost)
  const a = { samples: [] as PreparedSample[], cost: 0 }
  const b = { samples: [] as PreparedSample[], cost: 0 }
  for (const sample of samples.toSorted((x, y) => weigh(y) - weigh(x))) {
    const side = b.cost < a.cost ? b : a
    side.samples.push(sample)
    side.cost += weigh(sample)
  }
  return [a, b] as const
}
