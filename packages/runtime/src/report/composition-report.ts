import { formatSource } from '@trilithon/core'
import type { Composition, UnavailableKey } from '../compose/composition.ts'
import { type ConfigPath, joinPath, leafPaths, nodeAt, splitPath, startsWith, toPlain } from '../config/tree.ts'
import { missingRoles } from './missing-roles.ts'
import { type RankCounts, rankCountsOf } from './rank-counts.ts'

/** What a dry run tells, for machines (`--json`) and as the source of the text. JSON-serialisable. */
export interface CompositionReport {
  readonly root: string
  readonly files: readonly string[]
  readonly roles: readonly { readonly name: string; readonly built: boolean }[]
  /** Processes by what they do; absent where the configuration of this root does not decide it. */
  readonly ranks: RankCounts | undefined
  readonly plugins: readonly {
    /** Id of the seam; null for a package that fills none that is named yet. */
    readonly seam: string | null
    readonly name: string
    readonly origin: 'built-in' | 'installed' | 'local' | 'not installed' | 'not built yet'
    readonly version: string | null
    readonly roles: readonly string[]
    /** The written keys that chose it; none for a default. */
    readonly keys: readonly string[]
  }[]
  /** Written keys by the package that owns them. */
  readonly owners: Readonly<Record<string, readonly string[]>>
  readonly unavailable: readonly (ReportedKey & { readonly code: string; readonly owner: string; readonly hint: string })[]
  readonly ignored: readonly ReportedKey[]
  readonly overruled: readonly (Omit<ReportedKey, 'reason'> & { readonly used: unknown; readonly reason: string | null })[]
  readonly notices: readonly string[]
  readonly written: readonly string[]
}

interface ReportedKey {
  readonly path: string
  readonly value: unknown
  /** The value as it was written, without what its table has by default. */
  readonly given: unknown
  readonly source: string
  /** A sentence without its full stop. */
  readonly reason: string
}

export function reportOf(composition: Composition, unavailable: readonly UnavailableKey[], written: readonly string[]): CompositionReport {
  const missing = missingRoles(composition.root, composition.roles)
  const shown = <Key extends { readonly path: string; readonly value: unknown; readonly source: UnavailableKey['source'] }>(key: Key) => ({
    ...key,
    given: givenAt(composition, key.path, key.value),
    source: formatSource(key.source),
  })
  return {
    root: composition.root,
    files: composition.files,
    roles: composition.roles.map((name) => ({ name, built: !missing.includes(name) })),
    ranks: rankCountsOf(composition),
    plugins: [...chosenPlugins(composition), ...absentPlugins(composition)],
    owners: ownersOf(composition),
    unavailable: unavailable.map(shown),
    ignored: composition.ignored.map(shown),
    overruled: composition.overruled.map((key) => ({ ...shown(key), reason: key.reason ?? null })),
    notices: composition.notices,
    written,
  }
}

function givenAt({ tree }: Composition, path: string, value: unknown): unknown {
  const node = nodeAt(tree, splitPath(path))
  return node?.kind === 'table' ? toPlain(node) : value
}

function chosenPlugins({ plugins, tree }: Composition): CompositionReport['plugins'] {
  return plugins.map(({ definition, candidate, roles, uses }) => ({
    seam: definition.fills.id,
    name: candidate.name,
    origin: candidate.origin,
    version: candidate.version ?? null,
    roles,
    keys: uses.flatMap(({ claim, path, keys }) => {
      if (claim.type === undefined) return keys.map((key) => joinPath(path, key))
      return nodeAt(tree, path) === undefined ? [] : [joinPath(path)]
    }),
  }))
}

function absentPlugins({ absent }: Composition): CompositionReport['plugins'] {
  return absent.map(({ name, built, seam, keys }) => ({
    seam: seam ?? null,
    name,
    origin: built ? 'not installed' : 'not built yet',
    version: null,
    roles: [],
    keys,
  }))
}

/** Every written key under the package that owns it: the plugin that claims it, else the role. */
function ownersOf({ mounts, owned, root, tree }: Composition): Record<string, string[]> {
  const byDepth = [...owned].sort((a, b) => b.path.length - a.path.length)
  const innermostFirst = [...mounts].sort((a, b) => b.at.length - a.at.length)
  const isOwn = (path: ConfigPath) => (one: (typeof owned)[number]) =>
    startsWith(path, one.path) && (one.keys === undefined || one.keys.includes(path[one.path.length] ?? ''))
  const owners: Record<string, string[]> = {}
  for (const path of leafPaths(tree)) {
    const owner = byDepth.find(isOwn(path))?.owner ?? innermostFirst.find(({ at }) => startsWith(path, at))?.owner ?? root
    owners[owner] = [...(owners[owner] ?? []), joinPath(path)]
  }
  return owners
}
