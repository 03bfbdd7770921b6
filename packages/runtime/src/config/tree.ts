import { invariant, type Source } from '@trilithon/core'

/**
 * A configuration before it is checked: plain values, each with the place where it was written.
 *
 * `text` is bare text of the command line, whose type only the schema can tell. `words` counts what followed the flag: none for a bare `--flag`.
 */
export type ConfigNode =
  | { readonly kind: 'table'; readonly entries: ReadonlyMap<string, ConfigNode>; readonly source: Source }
  | { readonly kind: 'list'; readonly items: readonly ConfigNode[]; readonly source: Source }
  | { readonly kind: 'value'; readonly value: string | number | bigint | boolean | null | Date; readonly source: Source }
  | { readonly kind: 'text'; readonly words: readonly string[]; readonly negated: boolean; readonly source: Source }

export type TableNode = Extract<ConfigNode, { kind: 'table' }>

export type ConfigPath = readonly string[]

export function splitPath(path: string): string[] {
  return path === '' ? [] : path.split('.')
}

export function joinPath(...parts: readonly (string | ConfigPath)[]): string {
  return parts
    .flat()
    .filter((part) => part !== '')
    .join('.')
}

export function emptyTable(source: Source): TableNode {
  return { kind: 'table', entries: new Map(), source }
}

/** The node at `path`, or undefined. Items of a list are named by their index. */
export function nodeAt(node: ConfigNode | undefined, path: ConfigPath): ConfigNode | undefined {
  let current = node
  for (const key of path) {
    if (current?.kind === 'table') current = current.entries.get(key)
    else if (current?.kind === 'list') current = current.items[Number(key)]
    else return undefined
  }
  return current
}

/** Where the value at `path` was written; for a path that was not written, its nearest written ancestor. */
export function sourceAt(node: ConfigNode, path: ConfigPath): Source {
  for (let length = path.length; length > 0; length--) {
    const found = nodeAt(node, path.slice(0, length))
    if (found !== undefined) return found.source
  }
  return node.source
}

/** A tree with `value` at `path`; undefined removes the key. Tables on the way are created, anything else on the way is replaced. */
export function withNode(root: TableNode, path: ConfigPath, value: ConfigNode | undefined): TableNode {
  const [key, ...rest] = path
  invariant(key !== undefined, 'the root of a configuration cannot be replaced by withNode')
  const entries = new Map(root.entries)
  if (rest.length === 0) {
    if (value === undefined) entries.delete(key)
    else entries.set(key, value)
    return { ...root, entries }
  }
  const child = entries.get(key)
  if (child?.kind === 'list') {
    const [index, ...below] = rest
    const items = [...child.items]
    const item = items[Number(index)]
    if (item === undefined) return root
    if (below.length === 0) {
      if (value !== undefined) items[Number(index)] = value
    } else if (item.kind === 'table') items[Number(index)] = withNode(item, below, value)
    entries.set(key, { ...child, items })
    return { ...root, entries }
  }
  if (child?.kind !== 'table' && value === undefined) return root
  const table = child?.kind === 'table' ? child : emptyTable(value?.source ?? root.source)
  entries.set(key, withNode(table, rest, value))
  return { ...root, entries }
}

/** Later wins: tables merge key by key, everything else is replaced whole. */
export function mergeNodes(below: ConfigNode | undefined, above: ConfigNode): ConfigNode {
  if (below?.kind !== 'table' || above.kind !== 'table') return above
  const entries = new Map(below.entries)
  for (const [key, value] of above.entries) entries.set(key, mergeNodes(entries.get(key), value))
  return { ...above, entries, source: below.source }
}

/** The values alone, as a schema wants them. Text is what it looks like: one word or a list of words. */
export function toPlain(node: ConfigNode): unknown {
  switch (node.kind) {
    case 'table': {
      // Without a prototype: a key named `__proto__` is a key.
      const plain: Record<string, unknown> = Object.create(null)
      for (const [key, value] of node.entries) plain[key] = toPlain(value)
      return plain
    }
    case 'list':
      return node.items.map(toPlain)
    case 'value':
      return node.value
    case 'text':
      return node.words.length === 1 ? node.words[0] : [...node.words]
  }
}

/** A plain JSON value as a node; every part of it has the one source. */
export function fromPlain(value: unknown, source: Source): ConfigNode {
  if (Array.isArray(value)) return { kind: 'list', items: value.map((item) => fromPlain(item, source)), source }
  if (typeof value === 'object' && value !== null && !(value instanceof Date)) {
    return { kind: 'table', entries: new Map(Object.entries(value).map(([key, item]) => [key, fromPlain(item, source)])), source }
  }
  invariant(
    value === null || ['string', 'number', 'bigint', 'boolean'].includes(typeof value) || value instanceof Date,
    `a configuration value cannot be a ${typeof value}`,
  )
  return { kind: 'value', value: value as string, source }
}

/** The text of a string value or of one bare word; undefined for anything else. */
export function textOf(node: ConfigNode | undefined): string | undefined {
  if (node?.kind === 'value' && typeof node.value === 'string') return node.value
  if (node?.kind === 'text' && node.words.length === 1) return node.words[0]
  return undefined
}

/** Paths that match a pattern in which `*` stands for every item of a list or key of a table. */
export function matchingPaths(node: ConfigNode, pattern: ConfigPath): ConfigPath[] {
  const [head, ...rest] = pattern
  if (head === undefined) return [[]]
  const keys = head === '*' ? childKeys(node) : [head]
  return keys.flatMap((key) => {
    const child = nodeAt(node, [key])
    if (child === undefined) return []
    return matchingPaths(child, rest).map((path) => [key, ...path])
  })
}

function childKeys(node: ConfigNode): string[] {
  if (node.kind === 'table') return [...node.entries.keys()]
  return node.kind === 'list' ? node.items.map((_, index) => String(index)) : []
}

/** Paths of everything that was written: values, lists of values, and tables that are empty. */
export function leafPaths(node: ConfigNode, path: ConfigPath = []): ConfigPath[] {
  if (node.kind === 'table' && (node.entries.size > 0 || path.length === 0))
    return [...node.entries].flatMap(([key, child]) => leafPaths(child, [...path, key]))
  if (node.kind === 'list' && node.items.some((item) => item.kind === 'table'))
    return node.items.flatMap((item, index) => leafPaths(item, [...path, String(index)]))
  return [path]
}

/** The value at a path of a plain configuration; undefined where a table on the way is missing. */
export function valueAt(value: unknown, path: ConfigPath): unknown {
  let current = value
  for (const key of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, key)) return undefined
    current = (current as Record<string, unknown>)[key]
  }
  return current
}

export function startsWith(path: ConfigPath, prefix: ConfigPath): boolean {
  return prefix.every((key, index) => path[index] === key)
}
