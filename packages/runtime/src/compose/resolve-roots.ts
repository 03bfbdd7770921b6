import { type CheckProblem, type ConfigurationNotice, type IsGiven, TrilithonError } from '@trilithon/core'
import { conform } from '../config/conform.ts'
import { type ConfigPath, emptyTable, joinPath, nodeAt, sourceAt, splitPath, type TableNode, withNode } from '../config/tree.ts'
import { type OwnerHint, validate } from '../config/validate.ts'
import type { IgnoredKey, OverruledKey, UnavailableKey } from './composition.ts'
import { listOverruled, type Reason } from './list-overruled.ts'
import { listUnread } from './list-unread.ts'
import type { Mount } from './mount.ts'
import type { ClaimedValue } from './plugin-config.ts'

export type Resolved = Record<string, Record<string, unknown>>

export interface ResolvedRoots {
  readonly resolved: Resolved
  readonly unavailable: readonly UnavailableKey[]
  readonly ignored: readonly IgnoredKey[]
  readonly overruled: readonly OverruledKey[]
  readonly notices: readonly string[]
  readonly problems: readonly TrilithonError[]
}

export interface ResolveOptions {
  /** Roots that could lie in this one and are not written: they are null. */
  readonly absentParts: readonly string[]
  readonly claimed: readonly ClaimedValue[]
  readonly ownerHint: OwnerHint
  /** Shared keys are in conflict, so rules between the roots would report the same a second time. */
  readonly sharedConflict: boolean
}

/**
 * Parses what the plugins left of the tree with the schemas of the roots, puts the plugins' values back at their places, derives, and applies
 * the rules: first the roots below, then the root that holds them.
 *
 * `written` is the whole tree with all claimed keys: it answers which keys the user gave, and where.
 */
export function resolveRoots(
  tree: TableNode,
  written: TableNode,
  mounts: readonly Mount[],
  { absentParts, claimed, ownerHint, sharedConflict }: ResolveOptions,
): ResolvedRoots {
  const resolved: Resolved = {}
  const problems: TrilithonError[] = []
  const ignored: IgnoredKey[] = []
  const notices = new Notices()
  const parsedRoots: Resolved = {}
  // An outer table goes back before what lies in it.
  const outermostFirst = [...claimed].sort((a, b) => a.path.length - b.path.length)
  const innermostFirst = [...mounts].sort((a, b) => b.at.length - a.at.length)

  for (const mount of innermostFirst) {
    const parsed = parseOwnKeys(tree, mount, mounts, ownerHint)
    problems.push(...parsed.problems)
    if (parsed.value === undefined) continue
    ignored.push(...listUnread(parsed.value, mount, written).ignored)

    const below = mounts.filter((other) => other !== mount && other.at.length > mount.at.length)
    let config: Record<string, unknown> = { ...parsed.value }
    if (mount.at.length === 0) for (const part of absentParts) config[part] = null
    for (const { path, value } of outermostFirst) {
      if (mountOf(path, innermostFirst) === mount) config = mergedAt(config, path.slice(mount.at.length), value)
    }
    for (const part of below) config[joinPath(part.at)] = resolved[part.root.name]
    resolved[mount.root.name] = config
    parsedRoots[mount.root.name] = config
    // Values between roots follow from whole roots, and a conflict of shared keys would be reported a second time.
    if (below.length > 0 && (sharedConflict || below.some((part) => resolved[part.root.name] === undefined))) continue

    const isGiven = (path: string) => nodeAt(written, [...mount.at, ...splitPath(path)]) !== undefined
    config = (mount.root.derive?.(config as never, isGiven) as Record<string, unknown> | undefined) ?? config
    for (const problem of mount.root.rules?.(config as never, isGiven) ?? []) problems.push(ruleProblem(problem, mount, written))
    notices.add(mount, mount.root.notices?.(config as never, isGiven) ?? [], isGiven)
    resolved[mount.root.name] = config
    // What the outer root derived for the roots below is theirs.
    for (const part of below) resolved[part.root.name] = config[joinPath(part.at)] as Record<string, unknown>
  }
  // A feature that is not built may also have been asked for by what followed from other keys.
  const unavailable = innermostFirst.flatMap((mount) => listUnread(resolved[mount.root.name], mount, written).unavailable)
  const overruled = listOverruled(written, mounts, parsedRoots, resolved, notices.reasons)
  return { resolved, unavailable, ignored, overruled, notices: [...notices.sentences], problems }
}

/** What the roots say: sentences, each once, and reasons by the tree path of the written key that they are about. */
class Notices {
  readonly sentences = new Set<string>()
  readonly reasons = new Map<string, Reason>()

  add(mount: Mount, notices: Iterable<ConfigurationNotice>, isGiven: IsGiven): void {
    for (const notice of notices) {
      if (typeof notice === 'string') this.sentences.add(notice)
      else if (isGiven(notice.path))
        this.reasons.set(joinPath(mount.at, notice.path), { message: notice.message, unused: notice.unused === true })
    }
  }
}

/** A root's own keys through its own schema. */
function parseOwnKeys(tree: TableNode, mount: Mount, mounts: readonly Mount[], ownerHint: OwnerHint) {
  const { schema } = mount.root
  const flagFaults: TrilithonError[] = []
  const conformed = conform(ownTable(tree, mount, mounts), schema, mount.at, flagFaults)
  const reported = new Set(flagFaults.flatMap((problem) => problem.path ?? []))
  const { value, problems } = validate(conformed, schema, mount.at, reported, ownerHint)
  return { value, problems: [...flagFaults, ...problems] }
}

/** The part of the tree that a root's own schema judges: without the roots that lie in it. */
function ownTable(tree: TableNode, mount: Mount, mounts: readonly Mount[]): TableNode {
  const node = nodeAt(tree, mount.at)
  let table = node === undefined ? emptyTable(tree.source) : (node as TableNode)
  if (table.kind !== 'table') return table
  for (const other of mounts) {
    if (other !== mount && other.at.length > mount.at.length) table = withNode(table, other.at.slice(mount.at.length), undefined)
  }
  return table
}

function mountOf(path: ConfigPath, innermostFirst: readonly Mount[]): Mount | undefined {
  return innermostFirst.find((mount) => mount.at.every((key, index) => path[index] === key))
}

/** Puts a plugin's values into a resolved table; a place that is null stays null, unless the value is a whole slot. */
function mergedAt(config: Record<string, unknown>, path: ConfigPath, part: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const [key, ...rest] = path
  if (key === undefined) return { ...config, ...part }
  const child = config[key]
  if (Array.isArray(child)) {
    const [index, ...below] = rest
    return {
      ...config,
      [key]: child.map((item, at) => (String(at) === index ? mergedAt(item as Record<string, unknown>, below, part) : item)),
    }
  }
  if (rest.length === 0 && 'type' in part) return { ...config, [key]: part }
  if (typeof child !== 'object' || child === null) return config
  return { ...config, [key]: mergedAt(child as Record<string, unknown>, rest, part) }
}

function ruleProblem(problem: CheckProblem, mount: Mount, written: TableNode): TrilithonError {
  const { message, path = '', hint } = typeof problem === 'string' ? { message: problem } : problem
  const place = [...mount.at, ...splitPath(path)]
  return new TrilithonError('CONFIG_VALUE_CONFLICT', message, {
    path: joinPath(place),
    source: sourceAt(written, place),
    hint: hint ?? 'Change one of the values.',
  })
}
