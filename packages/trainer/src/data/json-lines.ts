import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { type RowSource, rowInvalid } from './row-source.ts'

const newline = 10
const chunkBytes = 1 << 20

/**
 * A file of one JSON value per line; empty lines are no rows. Only the places of the lines are held, a row is read when it is asked for. A file that
 * begins with `[` is one list of rows, and is held.
 */
export function readJsonLines(file: string): RowSource {
  const fd = openSync(file, 'r')
  try {
    const first = Buffer.alloc(64)
    const begin = first.toString('utf8', 0, readSync(fd, first, 0, first.length, 0))
    if (begin.trimStart().startsWith('[')) {
      closeSync(fd)
      return readJsonList(file)
    }
    return indexLines(fd, file)
  } catch (error) {
    closeQuietly(fd)
    throw error
  }
}

function indexLines(fd: number, file: string): RowSource {
  const { size } = fstatSync(fd)
  const starts: number[] = []
  const ends: number[] = []
  const lines: number[] = []
  const chunk = Buffer.alloc(Math.min(chunkBytes, Math.max(size, 1)))
  let start = 0
  let line = 1
  let hasText = false
  const endLine = (end: number) => {
    if (hasText) {
      starts.push(start)
      ends.push(end)
      lines.push(line)
    }
    start = end + 1
    line++
    hasText = false
  }
  for (let position = 0; position < size; ) {
    const got = readSync(fd, chunk, 0, chunk.length, position)
    if (got === 0) break
    for (let at = 0; at < got; at++) {
      const byte = chunk[at] ?? 0
      if (byte === newline) endLine(position + at)
      else if (byte > 32) hasText = true
    }
    position += got
  }
  endLine(size)
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const place = (row: number) => ({ file, line: lines[row] ?? 0 })
  let isOpen = true
  return {
    count: starts.length,
    place,
    read(row) {
      const from = starts[row] ?? 0
      const bytes = Buffer.alloc((ends[row] ?? from) - from)
      readSync(fd, bytes, 0, bytes.length, from)
      try {
        return JSON.parse(decoder.decode(bytes))
      } catch (cause) {
        throw rowInvalid(place(row), `the row is no JSON: ${(cause as Error).message}`, cause)
      }
    },
    close() {
      if (isOpen) closeSync(fd)
      isOpen = false
    },
  }
}

/** Rows of a list have no lines of their own; they are named by their number. */
function readJsonList(file: string): RowSource {
  let list: unknown
  try {
    list = JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw rowInvalid({ file, line: 1 }, `the file is no JSON: ${(cause as Error).message}`, cause)
  }
  const rows = list as readonly unknown[]
  return { count: rows.length, place: (row) => ({ file, line: row + 1 }), read: (row) => rows[row], close: () => undefined }
}

/** The error that is under way says more than one of closing. */
function closeQuietly(fd: number): void {
  try {
    closeSync(fd)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBADF') throw error
  }
}
