import type { Document } from './document.ts'

/** Where a run stands in its data: the pass, and the number of rows of it that are used up. Written into checkpoints. */
export interface DataPosition {
  readonly epoch: number
  readonly row: number
}

export const dataStart: DataPosition = { epoch: 0, row: 0 }

/** Documents by position. What is at a position depends on nothing that was read before. */
export interface DocumentSource {
  /** Rows of a pass. */
  readonly rows: number
  /** Throws `DATA_INVALID`. A row that has nothing to train within the sequence length gives undefined. */
  read(position: DataPosition): Document | undefined
  close(): void
}

/** The position behind `position`. */
export function nextPosition({ epoch, row }: DataPosition, rows: number): DataPosition {
  return row + 1 < rows ? { epoch, row: row + 1 } : { epoch: epoch + 1, row: 0 }
}
