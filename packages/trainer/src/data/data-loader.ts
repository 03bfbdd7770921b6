import { type MicroBatch, TrilithonError } from '@trilithon/core'
import { documentMicroBatch, fitsRow } from '../packing/pack-documents.ts'
import type { Document } from './document.ts'
import { type DataPosition, type DocumentSource, dataStart, nextPosition } from './document-source.ts'

export interface DataLoaderOptions {
  readonly source: DocumentSource
  readonly seqLen: number
  /** Packed rows of a batch. */
  readonly batchSize: number
  /** Packed rows of a micro-batch; divides `batchSize`. */
  readonly microBatchSize?: number
  readonly padToMultipleOf?: number
  readonly profile: string
  /** Where to go on; the start of the data otherwise. */
  readonly position?: DataPosition
  /** Passes over the data; without a number it never ends. */
  readonly epochs?: number
}

/** One batch for all ranks, and where the data stands behind it. */
export interface DataBatch {
  readonly microBatches: readonly MicroBatch[]
  /** For the checkpoint: a run that goes on from here trains what it would have trained. */
  readonly position: DataPosition
  readonly documents: number
  readonly tokens: number
  readonly lossTokens: number
  /** Documents without a token to train that were passed over on the way. */
  readonly skippedDocuments: number
  /** Tokens that the sequence length cut off documents. */
  readonly cutTokens: number
}

/** Packs documents into batches, in order. */
export interface DataLoader {
  /** The next batch; undefined behind the last pass. The last batch may have fewer rows. Throws `DATA_INVALID`. */
  next(): DataBatch | undefined
  close(): void
}

export function createDataLoader(options: DataLoaderOptions): DataLoader {
  const { source, seqLen, batchSize, microBatchSize = 1, padToMultipleOf = 1, profile, epochs } = options
  let position = checkedPosition(options.position ?? dataStart, source)
  const isEnd = () => epochs !== undefined && position.epoch >= epochs

  /** A packed row; the document that no longer fits is read again for the next row. */
  const nextRow = (): { readonly documents: Document[]; readonly skipped: number } => {
    const documents: Document[] = []
    let skipped = 0
    let passed = 0
    while (!isEnd()) {
      const document = source.read(position)
      if (document !== undefined && !fitsRow(documents, document, seqLen)) break
      position = nextPosition(position, source.rows)
      if (document === undefined) {
        skipped++
        if (++passed >= source.rows) throw nothingToTrain(source.rows)
        continue
      }
      passed = 0
      documents.push(document)
    }
    return { documents, skipped }
  }
  return {
    next() {
      const rows: Document[][] = []
      let skippedDocuments = 0
      while (rows.length < batchSize && !isEnd()) {
        const { documents, skipped } = nextRow()
        skippedDocuments += skipped
        if (documents.length > 0) rows.push(documents)
      }
      if (rows.length === 0) return undefined
      const documents = rows.flat()
      const microBatches: MicroBatch[] = []
      for (let row = 0; row < rows.length; row += microBatchSize)
        microBatches.push(documentMicroBatch(rows.slice(row, row + microBatchSize), profile, padToMultipleOf))
      const sum = (value: (document: Document) => number) => documents.reduce((total, document) => total + value(document), 0)
      return {
        microBatches,
        position,
        documents: documents.length,
        tokens: sum(({ ids }) => ids.length),
        lossTokens: sum(({ mask }) => mask.reduce((total, flag) => total + flag, 0)),
        skippedDocuments,
        cutTokens: sum(({ cut }) => cut),
      }
    },
    close: () => source.close(),
  }
}

function checkedPosition(position: DataPosition, { rows }: DocumentSource): DataPosition {
  const { epoch, row } = position
  if (Number.isSafeInteger(epoch) && epoch >= 0 && Number.isSafeInteger(row) && row >= 0 && row < rows) return position
  throw new TrilithonError('DATA_INVALID', `The checkpoint stands at row ${row} of pass ${epoch}, and the data has ${rows} rows.`, {
    path: 'data.name',
    hint: 'Resume with the data that the run began with.',
  })
}

function nothingToTrain(rows: number): TrilithonError {
  return new TrilithonError('DATA_INVALID', `A whole pass over ${rows} rows found no token to train.`, {
    path: 'data.loss_mask',
    hint: 'Train roles that the rows have.',
  })
}
