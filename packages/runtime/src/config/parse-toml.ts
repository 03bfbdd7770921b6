import { invariant, type Source, TrilithonError } from '@trilithon/core'
import { type AST, ParseError, parseTOML } from 'toml-eslint-parser'
import type { ConfigNode, TableNode } from './tree.ts'

// A table while it is being filled; TOML lets later parts of a file add to earlier tables.
type OpenTable = { kind: 'table'; entries: Map<string, OpenNode>; source: Source }
type OpenList = { kind: 'list'; items: OpenNode[]; source: Source }
type OpenNode = OpenTable | OpenList | Extract<ConfigNode, { kind: 'value' }>

/** TOML text to a tree; every key and value keeps its line and column. Throws `CONFIG_SYNTAX_INVALID` or `CONFIG_KEY_DUPLICATE`. */
export function parseToml(text: string, file: string): TableNode {
  const root: OpenTable = { kind: 'table', entries: new Map(), source: { kind: 'file', file, line: 1, column: 1 } }
  for (const statement of parse(text, file).body[0].body) {
    if (statement.type === 'TOMLKeyValue') {
      assign(root, statement, file)
    } else {
      const table = openTable(root, statement, file)
      for (const pair of statement.body) assign(table, pair, file)
    }
  }
  return root
}

function parse(text: string, file: string): AST.TOMLProgram {
  try {
    return parseTOML(text)
  } catch (error) {
    if (!(error instanceof ParseError)) throw error
    const duplicate = /multiple times/.test(error.message)
    const source: Source = { kind: 'file', file, line: error.lineNumber, column: error.column + 1 }
    if (duplicate) {
      throw new TrilithonError('CONFIG_KEY_DUPLICATE', `${describeLine(text, error.lineNumber)} is written twice`, {
        source,
        hint: 'Keep one of the two; a table may be opened once.',
        cause: error,
      })
    }
    throw new TrilithonError(
      'CONFIG_SYNTAX_INVALID',
      `this is not TOML: ${error.message.charAt(0).toLowerCase()}${error.message.slice(1)}`,
      {
        source,
        hint: 'Strings need quotes, tables stand in [brackets].',
        cause: error,
      },
    )
  }
}

function describeLine(text: string, line: number): string {
  const written = text.split('\n')[line - 1]?.split('=')[0]?.trim() ?? ''
  return written === '' ? 'a key' : `\`${written}\``
}

function sourceOf(node: AST.TOMLNode, file: string): Source {
  return { kind: 'file', file, line: node.loc.start.line, column: node.loc.start.column + 1 }
}

function keyText(key: AST.TOMLBare | AST.TOMLQuoted): string {
  return key.type === 'TOMLBare' ? key.name : key.value
}

/** The table of `[a.b]`, or a new item of `[[a.b]]`. */
function openTable(root: OpenTable, statement: AST.TOMLTable, file: string): OpenTable {
  const path = statement.resolvedKey
  let current: OpenNode = root
  for (const [depth, part] of path.entries()) {
    const below = path[depth + 1]
    const make = (): OpenNode => {
      const source = sourceOf(statement, file)
      return typeof below === 'number' ? { kind: 'list', items: [], source } : { kind: 'table', entries: new Map(), source }
    }
    current = child(current, part, make)
  }
  invariant(current.kind === 'table', 'a TOML header names a table')
  return current
}

/** Keys and values of `a.b = value` below an open table. */
function assign(table: OpenTable, pair: AST.TOMLKeyValue, file: string): void {
  const keys = pair.key.keys.map(keyText)
  const last = keys.pop()
  invariant(last !== undefined, 'a TOML pair has a key')
  let current: OpenNode = table
  for (const key of keys) current = child(current, key, () => ({ kind: 'table', entries: new Map(), source: sourceOf(pair, file) }))
  invariant(current.kind === 'table', 'a dotted TOML key passes through tables')
  current.entries.set(last, contentOf(pair.value, sourceOf(pair, file), file))
}

function child(node: OpenNode, part: string | number, make: () => OpenNode): OpenNode {
  if (typeof part === 'number') {
    invariant(node.kind === 'list', 'a TOML index points into a list')
    const found = node.items[part] ?? make()
    node.items[part] = found
    return found
  }
  invariant(node.kind === 'table', 'a TOML key points into a table')
  const found = node.entries.get(part) ?? make()
  node.entries.set(part, found)
  return found
}

function contentOf(node: AST.TOMLContentNode, source: Source, file: string): OpenNode {
  switch (node.type) {
    case 'TOMLArray':
      return { kind: 'list', items: node.elements.map((item) => contentOf(item, sourceOf(item, file), file)), source }
    case 'TOMLInlineTable': {
      const table: OpenTable = { kind: 'table', entries: new Map(), source }
      for (const pair of node.body) assign(table, pair, file)
      return table
    }
    case 'TOMLValue':
      // Beyond 2^53 a number would silently lose digits; such an integer stays a bigint and no schema accepts it by accident.
      if (node.kind === 'integer') return { kind: 'value', value: Number.isSafeInteger(node.value) ? node.value : node.bigint, source }
      return { kind: 'value', value: node.value, source }
  }
}
