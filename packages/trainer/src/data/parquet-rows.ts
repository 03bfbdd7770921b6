import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet'
import { rowColumns } from './conversation.ts'
import { type RowSource, rowInvalid } from './row-source.ts'

const inflate = (decompress: (bytes: Uint8Array) => Uint8Array) => (bytes: Uint8Array, length: number) => {
  const plain = decompress(bytes)
  if (plain.length !== length) throw new Error(`a page has ${plain.length} bytes instead of ${length}`)
  return plain
}
const compressors = { GZIP: inflate(gunzipSync), BROTLI: inflate(brotliDecompressSync) }

/**
 * A Parquet file, read once, group of rows by group of rows; of each row the columns that we know are held, as JSON text. Snappy, gzip and brotli
 * are unpacked, zstd is not.
 */
export async function readParquet(file: string): Promise<RowSource> {
  const texts: string[] = []
  try {
    const buffer = await asyncBufferFromFile(file)
    const metadata = await parquetMetadataAsync(buffer)
    const names = new Set(parquetSchema(metadata).children.map(({ element }) => element.name))
    const columns = rowColumns.filter((name) => names.has(name))
    let rowStart = 0
    for (const group of metadata.row_groups) {
      const rowEnd = rowStart + Number(group.num_rows)
      const rows = columns.length === 0 ? [] : await parquetReadObjects({ file: buffer, metadata, columns, rowStart, rowEnd, compressors })
      for (const row of rows) texts.push(JSON.stringify(dropNulls(row)))
      // Without a known column the rows are empty, and refused by name.
      if (columns.length === 0) for (let row = rowStart; row < rowEnd; row++) texts.push('{}')
      rowStart = rowEnd
    }
  } catch (cause) {
    throw rowInvalid({ file, line: 1 }, `the file cannot be read as Parquet: ${(cause as Error).message}`, cause)
  }
  return {
    count: texts.length,
    place: (row) => ({ file, line: row + 1 }),
    read: (row) => JSON.parse(texts[row] ?? 'null'),
    close: () => undefined,
  }
}

/** Columns of structs have all keys that any row has, null where a row has none; and 64-bit numbers come as bigint. */
function dropNulls(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(dropNulls)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([, item]) => item !== null && item !== undefined)
  return Object.fromEntries(entries.map(([key, item]) => [key, dropNulls(item)]))
}
