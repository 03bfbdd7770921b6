import { formatSource, TrilithonError } from '@trilithon/core'
import {
  type ConfigNode,
  type ConfigPath,
  emptyTable,
  joinPath,
  nodeAt,
  splitPath,
  type TableNode,
  textOf,
  toPlain,
  withNode,
} from '../config/tree.ts'
import type { SharedKey } from '../roots/shared-keys.ts'
import { isNull } from './choose-plugins.ts'

/** Tree paths that took a shared value over, with the path of the shared key. */
export type Origins = ReadonlyMap<string, string>

interface Sharing {
  readonly origins: Map<string, string>
  readonly conflicts: TrilithonError[]
}

/** Copies the launcher's shared keys into the roots below, as `SharedKey` describes it. All conflicts together are one error. */
export function shareKeys(
  tree: TableNode,
  sharedKeys: readonly SharedKey[],
): { tree: TableNode; origins: Origins; problems: TrilithonError[] } {
  const sharing: Sharing = { origins: new Map(), conflicts: [] }
  let current = tree
  for (const shared of sharedKeys) {
    const from = splitPath(shared.from)
    const value = nodeAt(current, from)
    if (value === undefined || (isNull(value) && shared.presence === undefined) || !holds(current, shared)) continue
    for (const target of shared.to) {
      const to = splitPath(target)
      if (nodeAt(current, to.slice(0, 1))?.kind !== 'table') continue
      if (shared.presence === true) {
        if (nodeAt(current, to) === undefined && !isNull(value)) current = withNode(current, to, emptyTable(value.source))
      } else if (shared.as !== undefined) {
        current = take(current, from, filled(value, shared.as), to, shared, sharing)
      } else {
        current = takeAll(current, from, value, to, shared, sharing)
      }
    }
  }
  return { tree: current, origins: sharing.origins, problems: combine(sharing.conflicts) }
}

function holds(tree: TableNode, { when }: SharedKey): boolean {
  if (when === undefined) return true
  const node = nodeAt(tree, splitPath(when.at))
  if (node === undefined) return false
  // A bare flag has no type yet: `--bench` is true.
  if (node.kind === 'text' && node.words.length === 0) return when.is === !node.negated
  return (textOf(node) ?? String(toPlain(node))) === String(when.is)
}

function filled(value: ConfigNode, as: NonNullable<SharedKey['as']>): ConfigNode {
  if (typeof as !== 'string') return emptyTable(value.source)
  return { kind: 'value', value: as.replace('{value}', textOf(value) ?? ''), source: value.source }
}

/** A table is taken over key by key. */
function takeAll(tree: TableNode, from: ConfigPath, value: ConfigNode, to: ConfigPath, shared: SharedKey, sharing: Sharing): TableNode {
  if (value.kind !== 'table') return take(tree, from, value, to, shared, sharing)
  let current = tree
  if (nodeAt(tree, to) === undefined) {
    current = withNode(tree, to, emptyTable(value.source))
    sharing.origins.set(joinPath(to), joinPath(from))
  }
  const [type, own] = [value.entries.get('type'), nodeAt(current, [...to, 'type'])]
  // A table of another type has other keys: that it differs is all there is to say.
  if (type !== undefined && own !== undefined && !sameValue(own, type))
    return take(current, [...from, 'type'], type, [...to, 'type'], shared, sharing)
  for (const [key, item] of value.entries) current = takeAll(current, [...from, key], item, [...to, key], shared, sharing)
  return current
}

function take(tree: TableNode, from: ConfigPath, value: ConfigNode, to: ConfigPath, shared: SharedKey, sharing: Sharing): TableNode {
  const present = nodeAt(tree, to)
  const blocked = to
    .slice(0, -1)
    .map((_, depth) => nodeAt(tree, to.slice(0, depth + 1)))
    .find((node) => node !== undefined && node.kind !== 'table')
  if (present === undefined && blocked === undefined) {
    sharing.origins.set(joinPath(to), joinPath(from))
    return withNode(tree, to, value)
  }
  const other = present ?? blocked
  const equal = present !== undefined && sameValue(present, value)
  if (!equal && shared.yields === undefined && other !== undefined) {
    sharing.conflicts.push(
      new TrilithonError(
        'CONFIG_VALUE_CONFLICT',
        `\`${joinPath(to)}\` is ${text(other)}, and the shared \`${joinPath(from)}\` is ${text(value)} (${formatSource(value.source)})`,
        {
          path: joinPath(to),
          source: other.source,
          hint: `Keep one of the two; \`${joinPath(from)}\` is enough.`,
        },
      ),
    )
  }
  return tree
}

/** Bare text of a flag and a typed value of a file are equal where they read the same. */
function sameValue(a: ConfigNode, b: ConfigNode): boolean {
  const words = (node: ConfigNode) =>
    node.kind === 'text' || node.kind === 'value' ? String(toPlain(node)) : JSON.stringify(toPlain(node))
  return words(a) === words(b)
}

function text(node: ConfigNode): string {
  return isNull(node) ? '"None"' : JSON.stringify(toPlain(node))
}

function combine(conflicts: readonly TrilithonError[]): TrilithonError[] {
  const [first] = conflicts
  if (first === undefined || conflicts.length === 1) return [...conflicts]
  const lines = conflicts.map(({ message, source }) => `${message}${source === undefined ? '' : ` at ${formatSource(source)}`}`)
  return [
    new TrilithonError('CONFIG_VALUE_CONFLICT', `${conflicts.length} keys differ from what is shared: ${lines.join('; ')}`, {
      path: first.path,
      source: first.source,
      hint: 'Write each value once, at the top.',
      details: { paths: conflicts.map(({ path }) => path) },
    }),
  ]
}

/**
 * A fault of a shared value is told once, at the shared key, however many roles have taken the value over: by the first of them. Several faults that
 * one role finds in it stay several.
 */
export function oncePerShared(problems: readonly TrilithonError[], origins: Origins): TrilithonError[] {
  const toldBy = new Map<string, string>()
  return problems.flatMap((problem) => {
    const { path, code, message, source, hint, details, cause } = problem
    if (path === undefined) return [problem]
    const shared = sharedPathOf(path, origins)
    // `trainer.` of `trainer.max_steps`; a shared key of another name than its target is told for each target.
    const role = shared === undefined || !path.endsWith(shared) ? '' : path.slice(0, path.length - shared.length)
    const place = `${code} ${shared ?? path}`
    if ((toldBy.get(place) ?? role) !== role) return []
    toldBy.set(place, role)
    if (shared === undefined) return [problem]
    const text = role === '' ? message : message.replaceAll(`\`${role}`, '`')
    return [new TrilithonError(code, text, { path: shared, source, hint, details, cause })]
  })
}

function sharedPathOf(path: string, origins: Origins): string | undefined {
  for (let length = path.length; length > 0; length = path.lastIndexOf('.', length - 1)) {
    const from = origins.get(path.slice(0, length))
    if (from !== undefined) return `${from}${path.slice(length)}`
  }
  return undefined
}
