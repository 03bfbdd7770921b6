import {
  attention,
  chooseKeys,
  fromArray,
  type IndexRows,
  indexerKl,
  type LatentKeys,
  latentAttention,
  latentAttentionWithLse,
  localSequence,
  type PackedSequences,
  packDocuments,
  type SequenceGathering,
} from '@trilithon/tensor'
import { refuse } from '../refuse.ts'
import { type ContextBackend, indexScale } from './context-backend.ts'

export interface PackedContext extends ContextBackend {
  /** Rows of all ranks together. */
  readonly tokens: number
  readonly sequences: PackedSequences
}

/**
 * The back-end of training: documents of these lengths, one after another. Where the sequence is split over ranks, `sequence` says which rows are
 * here and brings the keys of the others; forward passes then get the ids of their own rows.
 *
 * Its tensors belong to the scope in which it is made.
 */
export function createPackedContext(lengths: readonly number[], sequence: SequenceGathering = localSequence): PackedContext {
  checkLengths(lengths)
  const tokens = lengths.reduce((sum, length) => sum + length, 0)
  const { sequences, positions } = describeRows(lengths, tokens, sequence)
  const rows = positions.length
  const gathered = ({ latent, rotary }: LatentKeys) => ({ latent: sequence.keys(latent, tokens), rotary: sequence.keys(rotary, tokens) })
  const withAllKeys = (rows: IndexRows) => ({ ...rows, k: sequence.keys(rows.k, tokens) })
  return {
    rows,
    tokens,
    sequences,
    positions: fromArray('i32', [rows], positions),
    lastPosition: positions.reduce((last, position) => Math.max(last, position), 0),
    attend: (_layer, q, k, v, scale) => attention(q, sequence.keys(k, tokens), sequence.keys(v, tokens), sequences, scale),
    choose: (_layer, indexer, topK) => chooseKeys(withAllKeys(indexer), sequences, topK, indexScale(indexer)),
    attendLatent(_layer, q, keys, choice, scale, trained) {
      const all = gathered(keys)
      if (trained === null) return { out: latentAttention(q, all, sequences, choice, scale), indexLoss: null }
      const { out, lse } = latentAttentionWithLse(q, all, sequences, choice, scale)
      const indexLoss = indexerKl(withAllKeys(trained), { q, keys: all, lse, scale }, sequences, choice, indexScale(trained))
      return { out, indexLoss }
    },
  }
}

function checkLengths(lengths: readonly number[]): void {
  if (lengths.length === 0) refuse('createPackedContext', 'lengths', 'at least one document', 'none')
  for (const [index, length] of lengths.entries())
    if (!Number.isSafeInteger(length) || length < 1)
      refuse('createPackedContext', `lengths[${index}]`, 'a whole number of rows above 0', String(length))
}

/** Positions of this rank's rows, and their description for the ops: as chunks of documents where this rank has not all of them. */
function describeRows(lengths: readonly number[], tokens: number, sequence: SequenceGathering) {
  const sequences = packDocuments(lengths)
  const ranges = sequence.rows(tokens)
  const positions: number[] = []
  const starts = [0]
  const documents: number[] = []
  const firsts: number[] = []
  let begin = 0
  for (const [document, length] of lengths.entries()) {
    const end = begin + length
    for (const range of ranges) {
      const from = Math.max(begin, range.begin)
      const to = Math.min(end, range.end)
      if (from >= to) continue
      for (let row = from; row < to; row++) positions.push(row - begin)
      starts.push(positions.length)
      documents.push(document)
      firsts.push(from - begin)
    }
    begin = end
  }
  if (positions.length === tokens) return { sequences, positions }
  const list = (values: readonly number[]) => fromArray('i32', [values.length], values)
  return {
    sequences: { ...sequences, chunks: { starts: list(starts), documents: list(documents), positions: list(firsts) } },
    positions,
  }
}
