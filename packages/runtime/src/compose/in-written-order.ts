import type { TrilithonError } from '@trilithon/core'

/** Problems as somebody reads a file: file by file in the order of composition, from top to bottom; those of flags and plugins after them. */
export function inWrittenOrder(problems: readonly TrilithonError[], files: readonly string[]): TrilithonError[] {
  const placeOf = ({ source }: TrilithonError) => {
    if (source?.kind !== 'file') return { file: Number.POSITIVE_INFINITY, line: 0, column: 0 }
    const file = files.indexOf(source.file)
    return { file: file < 0 ? files.length : file, line: source.line, column: source.column }
  }
  const compare = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1)
  return problems.toSorted((a, b) => {
    const [first, second] = [placeOf(a), placeOf(b)]
    return compare(first.file, second.file) || compare(first.line, second.line) || compare(first.column, second.column)
  })
}
