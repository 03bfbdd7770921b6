import { TrilithonError } from '@trilithon/core'

/** Where a row stands. For Parquet `line` counts rows. */
export interface RowPlace {
  readonly file: string
  readonly line: number
}

/** Rows of a data set by number, in the order of its files. */
export interface RowSource {
  readonly count: number
  place(row: number): RowPlace
  /** Throws `DATA_INVALID` for a row that is no JSON. */
  read(row: number): unknown
  close(): void
}

export function rowInvalid({ file, line }: RowPlace, reason: string, cause?: unknown): TrilithonError {
  return new TrilithonError('DATA_INVALID', `${file}:${line}: ${reason}`, {
    path: file,
    source: { kind: 'file', file, line, column: 1 },
    hint: 'Correct the row, or remove it.',
    cause,
  })
}
