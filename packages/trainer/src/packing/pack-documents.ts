import type { MicroBatch } from '@trilithon/core'
import type { Document } from '../data/document.ts'
import { assembleMicroBatch } from './micro-batch.ts'
import type { PreparedSample } from './prepare-sample.ts'

/** Documents of one packed row, none of them longer than the row. */
export type PackedRow = readonly Document[]

/**
 * The packing `cat`: documents one behind the other while they fit, none of them cut in two; the first that does not fit begins the next row. Returns
 * whether `document` goes into `row`.
 */
export function fitsRow(row: PackedRow, document: Document, seqLen: number): boolean {
  const used = row.reduce((sum, { ids }) => sum + ids.length, 0)
  return row.length === 0 || used + document.ids.length <= seqLen
}

/** Packed rows as one micro-batch for supervised training; the id of a sequence is where its document stands. */
export function documentMicroBatch(rows: readonly PackedRow[], profile: string, padToMultipleOf = 1): MicroBatch {
  return assembleMicroBatch(
    rows.flat().map((document) => toSample(document, profile)),
    padToMultipleOf,
  )
}

function toSample({ ids, mask, where }: Document, profile: string): PreparedSample {
  const { length } = ids
  return {
    id: where,
    environment: '',
    inputIds: ids,
    mask,
    advantages: new Float32Array(length),
    logprobs: new Float32Array(length),
    temperatures: new Float32Array(length).fill(1),
    versions: new Uint32Array(length),
    contextVersionsMin: new Uint32Array(length),
    reward: null,
    trainingMode: 'sft',
    profile,
  }
}
