import { type AnyPlugin, type Claim, type Source, TrilithonError } from '@trilithon/core'
import { conform } from '../config/conform.ts'
import { objectKeys, schemasAt } from '../config/shape.ts'
import { type ConfigPath, joinPath, sourceAt, type TableNode, valueAt } from '../config/tree.ts'
import { validate } from '../config/validate.ts'
import { type KnownClaim, type KnownPlugin, schemaOfKnownClaim } from '../plugins/known-plugins.ts'
import type { AbsentUse, Chosen } from './choose-plugins.ts'
import type { AbsentPlugin, ComposedPlugin, Composition, OverruledKey, UnavailableKey } from './composition.ts'
import { type Mount, placeOf } from './mount.ts'

type Resolved = Composition['resolved']

/** A value that a plugin's schema has parsed, and the tree path that it goes back to. */
export interface ClaimedValue {
  readonly path: ConfigPath
  readonly value: Readonly<Record<string, unknown>>
}

export interface ParsedPlugin {
  readonly config: ComposedPlugin['config']
  readonly uses: ComposedPlugin['uses']
  readonly values: readonly ClaimedValue[]
  readonly problems: readonly TrilithonError[]
}

/** Parses the keys of every claim of a chosen plugin with the claim's own schema, the untouched claims with nothing written. */
export function parsePluginConfig(chosen: Chosen, definition: AnyPlugin, mounts: readonly Mount[]): ParsedPlugin {
  const problems: TrilithonError[] = []
  const config: Record<string, unknown> = {}
  const uses: ComposedPlugin['uses'][number][] = []
  const values: ClaimedValue[] = []
  for (const claim of definition.claims as readonly Claim[]) {
    const place = placeOf(mounts, claim.at.replaceAll('.*', ''))
    if (place === undefined) continue
    problems.push(...ownedByRole(definition, claim, place.mount))
    for (const use of usesOf(chosen, claim, place.path)) {
      const parsed = parseTable(use.node, claim.keys, use.path)
      problems.push(...parsed.problems)
      if (parsed.value === undefined) continue
      config[claim.at] = parsed.value
      uses.push({ claim, path: use.path, keys: [...use.node.entries.keys()] })
      // The type stands as it was written (a package's name or the claimed word), so that a resolved file chooses the same plugin.
      const type = claim.type === undefined ? {} : { type: use.type ?? claim.type }
      values.push({ path: use.path, value: { ...type, ...parsed.value } })
    }
  }
  return { config, uses, values, problems }
}

function usesOf(chosen: Chosen, claim: Claim, path: ConfigPath): { path: ConfigPath; node: TableNode; type?: string | undefined }[] {
  const written = chosen.uses.filter((use) => use.claim.at === claim.at && use.claim.type === claim.type)
  if (written.length > 0 || claim.type !== undefined) return [...written]
  return [{ path, node: { kind: 'table', entries: new Map(), source: { kind: 'flag', flag: claim.at } } }]
}

/** A key has one owner: a claim without `type` must not name a key of the role's schema. */
function ownedByRole(definition: AnyPlugin, claim: Claim, mount: Mount): TrilithonError[] {
  const below = claim.at.split('.').slice(1)
  if (claim.type !== undefined) {
    if ((mount.root.slots ?? []).some((slot) => slot.at === below.join('.'))) return []
    const message = `${definition.name} claims \`${claim.at}\` with a type, and that is no place for a plugin`
    return [
      new TrilithonError('CLAIM_CONFLICT', message, {
        path: claim.at,
        hint: `Places: ${(mount.root.slots ?? []).map((slot) => slot.at).join(', ')}.`,
      }),
    ]
  }
  const taken = schemasAt(mount.root.schema, below).flatMap((schema) => Object.keys(objectKeys(schema) ?? {}))
  return Object.keys(claim.keys.shape).flatMap((key) => {
    if (!taken.includes(key)) return []
    const path = joinPath(claim.at, key)
    return [
      new TrilithonError('CLAIM_CONFLICT', `${definition.name} claims \`${path}\`, which belongs to ${mount.owner}`, {
        path,
        hint: 'Remove the key from the claim.',
      }),
    ]
  })
}

function parseTable(node: TableNode, schema: Claim['keys'], path: ConfigPath) {
  const problems: TrilithonError[] = []
  const conformed = conform(node, schema, path, problems)
  const reported = new Set(problems.flatMap((problem) => problem.path ?? []))
  const { value, problems: faults } = validate(conformed, schema, path, reported)
  return { value: value as Readonly<Record<string, unknown>> | undefined, problems: [...problems, ...faults] }
}

/** Checks the keys of a package that is not installed, and lists those that ask for it. */
export function parseAbsent(use: AbsentUse): {
  value: ClaimedValue | undefined
  unavailable: UnavailableKey[]
  problems: TrilithonError[]
} {
  const { claim, path, node, active } = use
  if (claim.type === undefined && node.entries.size === 0)
    return { value: { path, value: inactiveValues(claim) }, unavailable: [], problems: [] }
  const { value, problems } = parseTable(node, schemaOfKnownClaim(claim), path)
  const unavailable = active.map((key): UnavailableKey => {
    const source = (key === 'type' ? use.typeSource : node.entries.get(key)?.source) ?? node.source
    return unavailableKey(use, key, key === 'type' ? claim.type : value?.[key], source)
  })
  const type = claim.type === undefined ? {} : { type: claim.type }
  return { value: value === undefined ? undefined : { path, value: { ...type, ...value } }, unavailable, problems }
}

/** What nobody wrote has the values that mean "not used"; no schema is needed to see that. */
function inactiveValues(claim: KnownClaim): Record<string, unknown> {
  return Object.fromEntries(Object.entries(claim.keys).map(([key, { inactive }]) => [key, structuredClone(inactive)]))
}

/** Keys of a package that is not installed which nobody wrote, and which have a value that asks for it all the same. */
export function followedFromOthers(use: AbsentUse, resolved: Resolved, mounts: readonly Mount[], tree: TableNode): UnavailableKey[] {
  const { claim, path, active } = use
  const mount = placeOf(mounts, claim.at)?.mount
  if (claim.type !== undefined || mount === undefined) return []
  const table = valueAt(resolved[mount.root.name], path.slice(mount.at.length))
  return Object.entries(claim.keys).flatMap(([key, { inactive }]) => {
    const value = valueAt(table, [key])
    if (value === undefined || active.includes(key) || JSON.stringify(value) === JSON.stringify(inactive)) return []
    return [unavailableKey(use, key, value, sourceAt(tree, [...path, key]))]
  })
}

function unavailableKey({ plugin, path }: AbsentUse, key: string, value: unknown, source: Source): UnavailableKey {
  return {
    path: joinPath(path, key),
    value,
    source,
    owner: plugin.package,
    reason: plugin.built
      ? `it belongs to ${plugin.package}, which is not installed`
      : `it belongs to ${plugin.package}, which is not built yet`,
    hint: plugin.built ? `Run: pnpm add ${plugin.package}` : 'Remove the key, or wait for a release that has it.',
    code: plugin.built ? 'PLUGIN_NOT_FOUND' : 'FEATURE_UNAVAILABLE',
  }
}

/** A table of a package that was written and is not in use: it has no effect, and that is said. */
export function unusedTable({ claim, path, node, unused, typeSource = node.source }: AbsentUse): OverruledKey[] {
  if (unused.length === 0) return []
  const reason = `It is not in use: ${unused.join(', and ')}.`
  return [{ path: joinPath(path, 'type'), value: claim.type, used: claim.type, source: typeSource, reason }]
}

/** The packages that keys ask for and that are not here, each with those keys. */
export function absentPlugins(known: readonly KnownPlugin[], unavailable: readonly UnavailableKey[]): AbsentPlugin[] {
  return known.flatMap((plugin) => {
    const keys = unavailable.filter(({ owner }) => owner === plugin.package).map(({ path }) => path)
    return keys.length === 0 ? [] : [{ name: plugin.package, built: plugin.built, seam: plugin.seam, keys }]
  })
}
