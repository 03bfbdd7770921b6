import { createRequire } from 'node:module'
import { type Source, TrilithonError } from '@trilithon/core'
import type * as Yaml from 'yaml'
import { type ConfigNode, emptyTable, type TableNode } from './tree.ts'

// Most runs read TOML alone, and this parser is seventy modules.
const require = createRequire(import.meta.url)

/** YAML or JSON text to a tree with places. Throws `CONFIG_SYNTAX_INVALID` or `CONFIG_KEY_DUPLICATE`. */
export function parseYaml(text: string, file: string): TableNode {
  const { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } = require('yaml') as typeof Yaml
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const place = (offset: number): Source => {
    const { line, col } = lines.linePos(offset)
    return { kind: 'file', file, line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const [error] = document.errors
  if (error !== undefined) {
    const source = place(error.pos[0])
    if (error.code === 'DUPLICATE_KEY') {
      throw new TrilithonError('CONFIG_KEY_DUPLICATE', 'a key is written twice', { source, hint: 'Keep one of the two.', cause: error })
    }
    throw new TrilithonError('CONFIG_SYNTAX_INVALID', `this is neither YAML nor JSON: ${error.message}`, {
      source,
      hint: 'Check quotes, commas and indentation.',
      cause: error,
    })
  }

  const convert = (node: unknown, source: Source): ConfigNode => {
    if (isAlias(node)) return convert(node.resolve(document), source)
    if (isMap(node)) {
      const entries = new Map<string, ConfigNode>()
      for (const { key, value } of node.items) {
        const keySource = place((key as { range?: [number, number, number] }).range?.[0] ?? 0)
        entries.set(String(isScalar(key) ? key.value : key), convert(value, keySource))
      }
      return { kind: 'table', entries, source }
    }
    if (isSeq(node)) return { kind: 'list', items: node.items.map((item) => convert(item, place(rangeStart(item)))), source }
    const value = isScalar(node) ? node.value : null
    return { kind: 'value', value: value as string | number | boolean | null, source }
  }

  const start = place(0)
  if (document.contents === null) return emptyTable(start)
  const root = convert(document.contents, start)
  if (root.kind !== 'table') {
    throw new TrilithonError('CONFIG_SYNTAX_INVALID', 'the file holds no table of keys', {
      source: start,
      hint: 'Write `key: value` lines.',
    })
  }
  return root
}

function rangeStart(node: unknown): number {
  return (node as { range?: [number, number, number] } | null)?.range?.[0] ?? 0
}
