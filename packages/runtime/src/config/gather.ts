import { type Source, TrilithonError } from '@trilithon/core'
import { checkText } from './check-text.ts'
import { loadFile } from './load-file.ts'
import { overlay, type SchemaLookup } from './overlay.ts'
import { parseArguments } from './parse-arguments.ts'
import { childSchemas, type Expectation, expectationOf } from './shape.ts'
import { type ConfigNode, emptyTable, fromPlain, nodeAt, type TableNode, withNode } from './tree.ts'

export interface Gathered {
  readonly tree: TableNode
  /** Files in the order in which they were read. */
  readonly files: readonly string[]
  readonly problems: readonly TrilithonError[]
}

/**
 * Composes files and flags, left to right, flags above all files. Nothing is checked against the schema yet: `lookup` only says what kind of
 * value a flag's key takes.
 */
export function gather(argv: readonly string[], workingDirectory: string, lookup: SchemaLookup): Gathered {
  const resolveFlag = (segments: readonly string[]) => {
    const path: string[] = []
    for (const segment of segments) {
      // A key of a free table is what the user says it is; every other key is snake_case.
      const verbatim = lookup(path).some((schema) => childSchemas(schema, segment).length > 0)
      path.push(verbatim ? segment : segment.replaceAll('-', '_'))
    }
    return { path, expectation: expectationOf(lookup(path)) }
  }
  const { steps, problems: usage } = parseArguments(argv, resolveFlag)
  const problems = [...usage]
  const files: string[] = []
  let fromFiles: ConfigNode = emptyTable({ kind: 'flag', flag: 'the command line' })
  let fromFlags = emptyTable({ kind: 'flag', flag: 'the command line' })

  for (const step of steps) {
    if (step.kind === 'file') {
      try {
        for (const table of loadFile(step.file, workingDirectory)) {
          fromFiles = overlay(fromFiles, step.at.length === 0 ? table : withNode(emptyTable(table.source), step.at, table), [], lookup)
        }
        files.push(step.file)
      } catch (error) {
        if (!TrilithonError.is(error)) throw error
        problems.push(error)
      }
      continue
    }
    const source: Source = { kind: 'flag', flag: step.flag }
    try {
      const node = flagNode(step.words, step.negated, source, expectationOf(lookup(step.at)))
      const blocked = blockingAncestor(fromFlags, step.at)
      if (blocked !== undefined) fromFlags = withNode(fromFlags, blocked, undefined)
      fromFlags = withNode(fromFlags, step.at, overlay(nodeAt(fromFlags, step.at), node, step.at, lookup))
    } catch (error) {
      if (!TrilithonError.is(error)) throw error
      problems.push(error)
    }
  }
  const whole = overlay(fromFiles, fromFlags, [], lookup) as TableNode
  // What is missing altogether is missing from the last file.
  const last = files.at(-1)
  const tree: TableNode = last === undefined ? whole : { ...whole, source: { kind: 'file', file: last, line: 1, column: 1 } }
  return { tree, files, problems: [...problems, ...checkText(tree)] }
}

/** `--a` and then `--a.b 1`: the later flag replaces a bare or negated one that stands on its way. */
function blockingAncestor(tree: TableNode, path: readonly string[]): readonly string[] | undefined {
  for (let length = 1; length < path.length; length++) {
    const node = nodeAt(tree, path.slice(0, length))
    if (node?.kind === 'text' || node?.kind === 'value') return path.slice(0, length)
  }
  return undefined
}

function flagNode(words: readonly string[], negated: boolean, source: Source, expectation: Expectation): ConfigNode {
  const [word] = words
  if (negated && word !== undefined) {
    throw new TrilithonError('USAGE_INVALID', 'a --no- flag takes no value', { source, hint: 'Leave the value out.' })
  }
  const opener = expectation === 'table' ? '{' : expectation === 'list' ? '[' : undefined
  if (words.length === 1 && word !== undefined && opener !== undefined && word.trimStart().startsWith(opener)) {
    try {
      return fromPlain(JSON.parse(word), source)
    } catch (error) {
      throw new TrilithonError('CONFIG_VALUE_INVALID', `this is not JSON: ${(error as Error).message}`, {
        source,
        hint: `Quote it for the shell: '${opener === '{' ? '{"key": 1}' : '["a", "b"]'}'.`,
        cause: error,
      })
    }
  }
  return { kind: 'text', words, negated, source }
}
