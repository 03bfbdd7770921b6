/** Which rows of queries and keys belong together, and at which positions they stand. All tensors are i32. */
import type { TensorHandle } from '@trilithon/native'
import { fromArray, type Tensor } from '../tensor.ts'

/**
 * Training: keys of documents lie one after another. Queries are the same rows; or, where the sequence is split over ranks, chunks of them in the
 * order of documents and positions.
 */
export interface PackedSequences {
  /** First row of each document, and the number of rows in all: [documents + 1]. */
  readonly documentStarts: Tensor
  readonly chunks?: QueryChunks | null
}

export interface QueryChunks {
  /** First row of q of each chunk, and the number of rows in all: [chunks + 1]. */
  readonly starts: Tensor
  /** [chunks]. */
  readonly documents: Tensor
  /** Position in its document of the first query: [chunks]. */
  readonly positions: Tensor
}

/** Engine: keys lie in pages, queries stand at the last positions of their sequence. */
export interface PagedSequences {
  /** First row of q of each sequence, and the number of rows in all: [sequences + 1]. */
  readonly queryStarts: Tensor
  /** Keys of each sequence, those of its queries included: [sequences]. */
  readonly contextLengths: Tensor
  /** [sequences, pages]. Entries behind the context are not read. */
  readonly blockTable: Tensor
}

/** Documents of these lengths, one after another. */
export function packDocuments(lengths: readonly number[]): PackedSequences {
  let row = 0
  const starts = [0, ...lengths.map((length) => (row += length))]
  return { documentStarts: fromArray('i32', [starts.length], starts) }
}

/** Position of every row in its document, counted from 0: [rows]. */
export function documentPositions(lengths: readonly number[]): Tensor {
  const positions = lengths.flatMap((length) => Array.from({ length }, (_, index) => index))
  return fromArray('i32', [positions.length], positions)
}

/** Arguments of native ops. */
export function packedArguments({ documentStarts, chunks }: PackedSequences): {
  readonly documentStarts: TensorHandle
  readonly chunkStarts: TensorHandle | undefined
  readonly chunkDocuments: TensorHandle | undefined
  readonly chunkPositions: TensorHandle | undefined
} {
  return {
    documentStarts: documentStarts.handle,
    chunkStarts: chunks?.starts.handle,
    chunkDocuments: chunks?.documents.handle,
    chunkPositions: chunks?.positions.handle,
  }
}

/** The tensors that a backward holds, in the order that `heldSequences` reads them in. */
export function tensorsOf({ documentStarts, chunks }: PackedSequences): readonly (Tensor | null)[] {
  return [documentStarts, chunks?.starts ?? null, chunks?.documents ?? null, chunks?.positions ?? null]
}

/** The held tensors of a step from index `first` on, as the sequences that they were. */
export function heldSequences(held: (index: number) => Tensor | null, first: number): PackedSequences {
  const [documentStarts, starts, documents, positions] = [0, 1, 2, 3].map((offset) => held(first + offset))
  const chunks = starts && documents && positions ? { starts, documents, positions } : null
  return { documentStarts: documentStarts as Tensor, chunks }
}

export function pagedArguments({ queryStarts, contextLengths, blockTable }: PagedSequences): {
  readonly queryStarts: TensorHandle
  readonly contextLengths: TensorHandle
  readonly blockTable: TensorHandle
} {
  return { queryStarts: queryStarts.handle, contextLengths: contextLengths.handle, blockTable: blockTable.handle }
}
