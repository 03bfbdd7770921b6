/** The indexer's ops: the best keys of each row, and the scores of given ones, through which its loss trains it. */
import { dsaIndexerScores, dsaIndexerScoresBackward, dsaIndexerSelect, dsaIndexerSelectPaged } from '@trilithon/native'
import { type ChosenKeys, empty, type PackedSequences, type PagedSequences, recorder, type Tensor } from '@trilithon/tensor'
import type { IndexerRows } from './context-backend.ts'

/** Scores are sums over heads of weight * relu(query · key), times this: as published, though no choice depends on it. */
const scaleOf = ({ queries }: IndexerRows): number => (queries.dim(1) * queries.dim(2)) ** -0.5

const emptyChoice = (rows: number, topK: number): ChosenKeys => ({ indices: empty('i32', [rows, topK]), counts: empty('i32', [rows]) })

/** Keys of packed documents. `keys` has the rows of all of them. */
export function chooseKeys(indexer: IndexerRows, keys: Tensor, sequences: PackedSequences, topK: number): ChosenKeys {
  const choice = emptyChoice(indexer.queries.dim(0), topK)
  dsaIndexerSelect({
    q: indexer.queries.handle,
    k: keys.handle,
    weights: indexer.weights.handle,
    documentStarts: sequences.documentStarts.handle,
    chunkStarts: sequences.chunks?.starts.handle,
    chunkDocuments: sequences.chunks?.documents.handle,
    chunkPositions: sequences.chunks?.positions.handle,
    indices: choice.indices.handle,
    counts: choice.counts.handle,
    scale: scaleOf(indexer),
  })
  return choice
}

/** Keys in pages. */
export function choosePagedKeys(indexer: IndexerRows, pages: Tensor, sequences: PagedSequences, topK: number): ChosenKeys {
  const choice = emptyChoice(indexer.queries.dim(0), topK)
  dsaIndexerSelectPaged({
    q: indexer.queries.handle,
    kPages: pages.handle,
    weights: indexer.weights.handle,
    queryStarts: sequences.queryStarts.handle,
    contextLengths: sequences.contextLengths.handle,
    blockTable: sequences.blockTable.handle,
    indices: choice.indices.handle,
    counts: choice.counts.handle,
    scale: scaleOf(indexer),
  })
  return choice
}

/** Scores of chosen keys, [T, K]; 0 behind the last of a row. Differentiable by what the indexer made of the rows. */
export function scoreKeys(indexer: IndexerRows, keys: Tensor, choice: ChosenKeys, { documentStarts, chunks }: PackedSequences): Tensor {
  const scores = empty(keys.dtype, choice.indices.shape)
  const scale = scaleOf(indexer)
  const inputs = [
    indexer.queries,
    keys,
    indexer.weights,
    documentStarts,
    chunks?.starts,
    chunks?.documents,
    chunks?.positions,
    choice.indices,
    choice.counts,
  ]
  const argumentsOf = (at: (index: number) => Tensor | null | undefined) => ({
    q: (at(0) as Tensor).handle,
    k: (at(1) as Tensor).handle,
    weights: (at(2) as Tensor).handle,
    documentStarts: (at(3) as Tensor).handle,
    chunkStarts: at(4)?.handle,
    chunkDocuments: at(5)?.handle,
    chunkPositions: at(6)?.handle,
    indices: (at(7) as Tensor).handle,
    counts: (at(8) as Tensor).handle,
    scale,
  })
  dsaIndexerScores({ ...argumentsOf((index) => inputs[index]), scores: scores.handle })
  recorder(...inputs)?.add('score-keys', inputs, [scores], inputs, (step) => {
    dsaIndexerScoresBackward({
      dScores: step.gradient(0).handle,
      ...argumentsOf((index) => step.heldOrNull(index)),
      dQ: step.fresh(0, step.held(0)).handle,
      dK: step.fresh(1, step.held(1)).handle,
      dWeights: step.fresh(2, step.held(2)).handle,
    })
  })
  return scores
}
