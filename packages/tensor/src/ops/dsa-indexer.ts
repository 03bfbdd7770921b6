/** The indexer of sparse attention: scores of keys by a few small heads, and the best keys of each query. */
import { dsaIndexerScores, dsaIndexerScoresBackward, dsaIndexerSelect, dsaIndexerSelectPaged } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, type Tensor } from '../tensor.ts'
import type { ChosenKeys } from './mla-attention.ts'
import { heldSequences, type PackedSequences, type PagedSequences, packedArguments, pagedArguments, tensorsOf } from './sequences.ts'

/** What the indexer computes of every row. */
export interface IndexRows {
  /** [queries, index_heads, width]. */
  readonly q: Tensor
  /** [keys, width], or pages [pages, block_size, width]. */
  readonly k: Tensor
  /** [queries, index_heads]. */
  readonly weights: Tensor
}

/** The `topK` keys of each query with the best scores; ties go to the lower position. The choice itself has no gradient. */
export function chooseKeys({ q, k, weights }: IndexRows, sequences: PackedSequences, topK: number, scale: number): ChosenKeys {
  return atomic(() => {
    const chosen = emptyChoice(q, topK)
    dsaIndexerSelect({
      q: q.handle,
      k: k.handle,
      weights: weights.handle,
      ...packedArguments(sequences),
      indices: chosen.indices.handle,
      counts: chosen.counts.handle,
      scale,
    })
    return chosen
  })
}

/** The same for the last queries of sequences whose keys lie in pages, with the same result. */
export function choosePagedKeys({ q, k, weights }: IndexRows, sequences: PagedSequences, topK: number, scale: number): ChosenKeys {
  return atomic(() => {
    const chosen = emptyChoice(q, topK)
    dsaIndexerSelectPaged({
      q: q.handle,
      kPages: k.handle,
      weights: weights.handle,
      ...pagedArguments(sequences),
      indices: chosen.indices.handle,
      counts: chosen.counts.handle,
      scale,
    })
    return chosen
  })
}

function emptyChoice(q: Tensor, topK: number): ChosenKeys {
  return { indices: empty('i32', [q.dim(0), topK]), counts: empty('i32', [q.dim(0)]) }
}

/** Scores of the chosen keys, [queries, topK]; 0 where a list has no entry. Differentiable by q, k and weights. */
export function indexScores({ q, k, weights }: IndexRows, sequences: PackedSequences, chosen: ChosenKeys, scale: number): Tensor {
  return atomic(() => {
    const scores = empty(q.dtype, chosen.indices.shape)
    dsaIndexerScores({
      q: q.handle,
      k: k.handle,
      weights: weights.handle,
      ...packedArguments(sequences),
      indices: chosen.indices.handle,
      counts: chosen.counts.handle,
      scores: scores.handle,
      scale,
    })
    const inputs = [q, k, weights, chosen.indices, chosen.counts, ...tensorsOf(sequences)]
    recorder(q, k, weights)?.add('index-scores', inputs, [scores], inputs, (step) => scoresGradient(step, scale))
    return scores
  })
}

function scoresGradient(step: BackwardStep, scale: number): void {
  const [q, k, weights] = [step.held(0), step.held(1), step.held(2)]
  dsaIndexerScoresBackward({
    dScores: step.gradient(0).handle,
    q: q.handle,
    k: k.handle,
    weights: weights.handle,
    indices: step.held(3).handle,
    counts: step.held(4).handle,
    ...packedArguments(heldSequences((index) => step.heldOrNull(index), 5)),
    dQ: step.fresh(0, q).handle,
    dK: step.fresh(1, k).handle,
    dWeights: step.fresh(2, weights).handle,
    scale,
  })
}
