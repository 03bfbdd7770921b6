import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, extname, join } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { readJsonLines } from './json-lines.ts'
import { readParquet } from './parquet-rows.ts'
import type { RowSource } from './row-source.ts'

const readers: Readonly<Record<string, (file: string) => RowSource | Promise<RowSource>>> = {
  '.jsonl': readJsonLines,
  '.json': readJsonLines,
  '.parquet': readParquet,
}
const kinds = Object.keys(readers).join(', ')

/**
 * Opens a file, or all files of a folder and its folder `data`, sorted by name. Where some of a folder's files begin with the name of the split
 * (`train-00000-of-00002.parquet`), those are taken, else all. Throws `DATA_NOT_FOUND`, and `DATA_INVALID` for files without a row.
 */
export async function openRows(path: string, split = 'train'): Promise<RowSource> {
  const files = findFiles(path, split)
  const parts: RowSource[] = []
  try {
    for (const file of files) parts.push(await (readers[extname(file)] ?? readJsonLines)(file))
  } catch (error) {
    for (const part of parts) part.close()
    throw error
  }
  const rows = joinSources(parts)
  if (rows.count > 0) return rows
  rows.close()
  throw new TrilithonError('DATA_INVALID', `${path} has no row`, { path: 'data.name', hint: 'Give data with at least one row.' })
}

function findFiles(path: string, split: string): string[] {
  if (!existsSync(path)) {
    const isHubName = /^[\w.-]+\/[\w.-]+$/.test(path)
    throw new TrilithonError('DATA_NOT_FOUND', `There is no data at ${path}.`, {
      path: 'data.name',
      hint: isHubName
        ? 'Data sets are not downloaded; copy this one and give its folder.'
        : `Give a file (${kinds}) or a folder with such files.`,
    })
  }
  if (!statSync(path).isDirectory()) {
    if (Object.hasOwn(readers, extname(path))) return [path]
    throw new TrilithonError('DATA_NOT_FOUND', `${path} is no file of a known kind.`, { path: 'data.name', hint: `Give one of ${kinds}.` })
  }
  const folders = [path, join(path, 'data')].filter((folder) => existsSync(folder) && statSync(folder).isDirectory())
  const files = folders.flatMap((folder) =>
    readdirSync(folder)
      .sort()
      .map((name) => join(folder, name)),
  )
  const known = files.filter((file) => Object.hasOwn(readers, extname(file)) && statSync(file).isFile())
  const ofSplit = known.filter((file) => new RegExp(`^${split.replaceAll(/[^\w]/g, '.')}([-_.]|$)`).test(basename(file)))
  if (ofSplit.length > 0) return ofSplit
  if (known.length > 0 && split === 'train') return known
  throw new TrilithonError('DATA_NOT_FOUND', `${path} holds no data${known.length > 0 ? ` of the split ${split}` : ''}.`, {
    path: 'data.name',
    hint: `Give a folder with files of the kinds ${kinds}${known.length > 0 ? ' whose names begin with the split' : ''}.`,
  })
}

function joinSources(parts: readonly RowSource[]): RowSource {
  const starts: number[] = []
  let count = 0
  for (const part of parts) {
    starts.push(count)
    count += part.count
  }
  const locate = (row: number) => {
    const index = starts.findLastIndex((start) => start <= row)
    const part = parts[index]
    if (part === undefined || row >= count) throw new TrilithonError('INVARIANT_BROKEN', `row ${row} of ${count} was asked for`)
    return { part, row: row - (starts[index] ?? 0) }
  }
  return {
    count,
    place(row) {
      const at = locate(row)
      return at.part.place(at.row)
    },
    read(row) {
      const at = locate(row)
      return at.part.read(at.row)
    },
    close() {
      for (const part of parts) part.close()
    },
  }
}
