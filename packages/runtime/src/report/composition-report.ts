import { formatSource } from '@trilithon/core'
import type { Composition, UnavailableKey } from '../compose/composition.ts'
import { type ConfigNode, type ConfigPath, joinPath } from '../config/tree.ts'
import { missingRoles } from './missing-roles.ts'

/** What a dry run tells, for machines (`--json`) and as the source of the text. JSON-serialisable. */
export interface CompositionReport {
  readonly root: string
  readonly files: readonly string[]
  readonly roles: readonly { readonly name: string; readonly built: boolean }[]
  readonly plugins: readonly {
    readonly seam: string
    readonly name: string
    readonly origin: string
    readonly version: string | null
    readonly roles: readonly string[]
    readonly keys: readonly string[]
  }[]
  /** Number of written keys by the package that owns them. */
  readonly owners: Readonly<Record<string, readonly string[]>>
  readonly unavailable: readonly {
    readonly code: string
    readonly path: string
    readonly value: unknown
    readonly source: string
    readonly reason: string
    readonly hint: string
  }[]
  readonly ignored: readonly { readonly path: string; readonly value: unknown; readonly source: string; readonly reason: string }[]
  readonly notices: readonly string[]
  readonly written: readonly string[]
}

export function reportOf(composition: Composition, unavailable: readonly UnavailableKey[], written: readonly string[]): CompositionReport {
  const missing = missingRoles(composition.roles)
  return {
    root: composition.root,
    files: composition.files,
    roles: composition.roles.map((name) => ({ name, built: !missing.includes(name) })),
    plugins: composition.plugins.map(({ definition, candidate, roles, uses }) => ({
      seam: definition.fills.id,
      name: candidate.name,
      origin: candidate.origin,
      version: candidate.version ?? null,
      roles,
      keys: uses.flatMap(({ claim, path, keys }) => (claim.type === undefined ? keys.map((key) => joinPath(path, key)) : [joinPath(path)])),
    })),
    owners: ownersOf(composition, unavailable),
    unavailable: unavailable.map(({ source, ...rest }) => ({ ...rest, source: formatSource(source) })),
    ignored: composition.ignored.map(({ source, ...rest }) => ({ ...rest, source: formatSource(source) })),
    notices: composition.notices,
    written,
  }
}

/** Every written key under the package that owns it: the plugin that claims it, else the role. */
function ownersOf(composition: Composition, unavailable: readonly UnavailableKey[]): Record<string, string[]> {
  const owners: Record<string, string[]> = {}
  const claimed = composition.plugins.flatMap(({ candidate, uses }) =>
    uses.flatMap(({ claim, path, keys }) =>
      claim.type === undefined
        ? keys.map((key) => ({ owner: candidate.name, path: [...path, key] }))
        : [{ owner: candidate.name, path: [...path] }],
    ),
  )
  const absent = unavailable.flatMap(({ path, reason }) => {
    const owner = /belongs to (\S+),/.exec(reason)?.[1]
    return owner === undefined ? [] : [{ owner, path: path.split('.') }]
  })
  const mounts = [...composition.mounts].sort((a, b) => b.at.length - a.at.length)
  const startsWith = (path: ConfigPath, prefix: ConfigPath) => prefix.every((key, index) => path[index] === key)
  for (const path of leaves(composition.tree, [])) {
    const owner =
      [...claimed, ...absent].find((one) => startsWith(path, one.path))?.owner ??
      mounts.find((mount) => startsWith(path, mount.at))?.owner ??
      composition.root
    owners[owner] = [...(owners[owner] ?? []), joinPath(path)]
  }
  return owners
}

function leaves(node: ConfigNode, path: ConfigPath): ConfigPath[] {
  if (node.kind === 'table' && (node.entries.size > 0 || path.length === 0))
    return [...node.entries].flatMap(([key, child]) => leaves(child, [...path, key]))
  if (node.kind === 'list' && node.items.some((item) => item.kind === 'table')) {
    return node.items.flatMap((item, index) => leaves(item, [...path, String(index)]))
  }
  return [path]
}
