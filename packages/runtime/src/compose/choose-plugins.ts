import { type ConfigurationSlot, type Source, TrilithonError } from '@trilithon/core'
import { nearest } from '../config/nearest.ts'
import { schemasAt, shapeOf, variantOf } from '../config/shape.ts'
import {
  type ConfigNode,
  type ConfigPath,
  emptyTable,
  joinPath,
  matchingPaths,
  nodeAt,
  sourceAt,
  splitPath,
  type TableNode,
  textOf,
  toPlain,
  withNode,
} from '../config/tree.ts'
import type { PluginCandidate } from '../plugins/candidate.ts'
import type { KnownClaim, KnownPlugin } from '../plugins/known-plugins.ts'
import type { OwnedKeys } from './composition.ts'
import { type Mount, placeOf } from './mount.ts'

type ManifestClaim = PluginCandidate['manifest']['claims'][number]

/** Keys that were cut out of the tree for one claim of a plugin. */
export interface ClaimUse {
  readonly claim: ManifestClaim
  /** Tree path of the claim's table. */
  readonly path: ConfigPath
  /** The claimed keys that were written; without `type`. */
  readonly node: TableNode
  /** The `type` as it was written: the claimed word or a package's name. */
  readonly type?: string
}

export interface Chosen {
  readonly candidate: PluginCandidate
  readonly uses: readonly ClaimUse[]
}

/** Claimed keys of a package that is not installed. `active` where a key has another value than its inactive one. */
export interface AbsentUse {
  readonly plugin: KnownPlugin
  readonly claim: KnownClaim
  readonly path: ConfigPath
  readonly node: TableNode
  readonly active: readonly string[]
  /** Why a written table is not in use; empty where it is. */
  readonly unused: readonly string[]
  /** Where the `type` of a slot was written. */
  readonly typeSource?: Source
}

export interface Choice {
  /** The tree without any claimed key: what the roles' schemas see. */
  readonly tree: TableNode
  readonly chosen: readonly Chosen[]
  readonly absent: readonly AbsentUse[]
  readonly owned: readonly OwnedKeys[]
  readonly problems: readonly TrilithonError[]
}

/** Resolves a `type` that no candidate claims as the name of an installed package. */
export type FindByName = (type: string) => PluginCandidate | undefined

/**
 * Chooses plugins by the keys that are written, and cuts those keys out of the tree. Pure but for `findByName`; no plugin runs.
 *
 * A typed claim is chosen by the `type` of its slot, an untyped one by any key at another value than its inactive one. What nothing claims
 * stays in the tree, for the roles' schemas to judge.
 */
export function choosePlugins(
  tree: TableNode,
  mounts: readonly Mount[],
  candidates: readonly PluginCandidate[],
  known: readonly KnownPlugin[],
  findByName: FindByName,
): Choice {
  const state: State = { written: tree, tree, uses: new Map(), absent: [], owned: [], problems: [] }
  const all = [...candidates]
  fillSlots(state, mounts, all, known, findByName)
  for (const candidate of all) {
    for (const claim of candidate.manifest.claims) if (claim.type === undefined) takeUntyped(state, mounts, candidate, claim)
  }
  for (const plugin of known) {
    if (all.some((candidate) => candidate.name === plugin.package)) continue
    for (const claim of plugin.claims) if (claim.type === undefined) takeAbsent(state, mounts, plugin, claim)
  }
  const chosen = [...state.uses].map(([candidate, uses]) => ({ candidate, uses }))
  return { tree: state.tree, chosen, absent: state.absent, owned: state.owned, problems: state.problems }
}

interface State {
  readonly written: TableNode
  tree: TableNode
  readonly uses: Map<PluginCandidate, ClaimUse[]>
  readonly absent: AbsentUse[]
  readonly owned: OwnedKeys[]
  readonly problems: TrilithonError[]
}

function fillSlots(
  state: State,
  mounts: readonly Mount[],
  candidates: PluginCandidate[],
  known: readonly KnownPlugin[],
  findByName: FindByName,
): void {
  // A slot below another is cut out first, so that the outer table no longer holds it.
  const slots = mounts
    .flatMap((mount) => (mount.root.slots ?? []).map((slot) => ({ mount, slot, depth: splitPath(slot.at).length })))
    .sort((a, b) => b.depth - a.depth)
  for (const { mount, slot } of slots) {
    const pattern = [...mount.at, ...splitPath(slot.at)]
    const claimAt = joinPath(mount.root.name, slot.at)
    const paths = slot.at.includes('*') ? matchingPaths(state.tree, pattern) : [pattern]
    for (const path of paths) fillSlot(state, mounts, mount, path, claimAt, slot, candidates, known, findByName)
  }
}

function fillSlot(
  state: State,
  mounts: readonly Mount[],
  mount: Mount,
  path: ConfigPath,
  claimAt: string,
  slot: ConfigurationSlot,
  candidates: PluginCandidate[],
  known: readonly KnownPlugin[],
  findByName: FindByName,
): void {
  const written = nodeAt(state.tree, path)
  if (written !== undefined && isNull(written)) {
    if (slot.defaultType !== null && schemasAt(mount.root.schema, path.slice(mount.at.length)).length > 0) return
    // Null is the default of an optional slot. Of a slot that the role fills itself its schema says that null is none of its values.
    state.tree = withNode(state.tree, path, undefined)
    if (slot.defaultType === null) return
    state.problems.push(
      new TrilithonError('CONFIG_VALUE_INVALID', `\`${joinPath(path)}\` is "None", but must be a table with a \`type\``, {
        path: joinPath(path),
        source: written.source,
        hint: `Remove it; without it the type is "${slot.defaultType}".`,
      }),
    )
    return
  }
  if (written === undefined && (slot.defaultType === null || nodeAt(state.tree, mount.at) === undefined)) return
  // `--orchestrator.router sticky`: the type alone.
  const table: ConfigNode = written === undefined || isBareFlag(written) ? emptyTable(sourceAt(state.tree, path)) : written
  const typeNode = table.kind === 'table' ? table.entries.get('type') : table
  const implied = written === undefined ? slot.defaultType : (slot.impliedType ?? slot.defaultType)
  const type = typeNode === undefined ? (implied ?? undefined) : textOf(typeNode)
  const shown = joinPath(path)
  const source = typeNode?.source ?? table.source
  if (type === undefined || (table.kind !== 'table' && table.kind !== 'text' && table.kind !== 'value')) {
    const message = typeNode === undefined ? `\`${shown}\` needs a \`type\`` : `\`${joinPath(path, 'type')}\` is not a string`
    state.problems.push(
      new TrilithonError('CONFIG_VALUE_INVALID', message, {
        path: joinPath(path, 'type'),
        source,
        hint: `Write type = "${typesAt(claimAt, candidates, known)[0] ?? '…'}".`,
      }),
    )
    state.tree = withNode(state.tree, path, undefined)
    return
  }
  const ownSchemas = schemasAt(mount.root.schema, path.slice(mount.at.length))
  if (ownSchemas.some((schema) => variantOf(shapeOf(schema).core, type) !== undefined)) return

  const entries = new Map(table.kind === 'table' ? table.entries : [])
  entries.delete('type')
  const node: TableNode = { kind: 'table', entries, source: table.source }
  state.tree = withNode(state.tree, path, undefined)
  const answers = candidates.filter(
    (candidate) => candidate.name === type || candidate.manifest.claims.some((claim) => claim.at === claimAt && claim.type === type),
  )
  if (answers.length > 1) {
    state.problems.push(
      new TrilithonError('SEAM_CONFLICT', `${answers.map(({ name }) => name).join(' and ')} both answer to \`${shown}\` type "${type}"`, {
        path: shown,
        source,
        hint: 'Name one of them by its full package name, or remove the other.',
      }),
    )
    return
  }
  const candidate = answers[0] ?? findByName(type)
  const claim = candidate?.manifest.claims.find(
    (one) => one.at === claimAt && (one.type === type || candidate.name === type || one.type !== undefined),
  )
  if (candidate !== undefined && claim !== undefined) {
    if (!candidates.includes(candidate)) candidates.push(candidate)
    addUse(state, candidate, { claim, path, node, type })
    state.owned.push({ owner: candidate.name, path, keys: undefined })
    return
  }
  const absent = known.flatMap((plugin) =>
    plugin.claims
      .filter((one) => one.at === claimAt && (one.type === type || plugin.package === type))
      .map((one) => ({ plugin, claim: one })),
  )[0]
  if (absent !== undefined) {
    const unused = whyUnused(state.written, mounts, absent.claim)
    state.absent.push({ ...absent, path, node, active: unused.length > 0 ? [] : ['type'], unused, typeSource: source })
    state.owned.push({ owner: absent.plugin.package, path, keys: undefined })
    return
  }
  const types = typesAt(claimAt, candidates, known)
  const suggestion = nearest(type, types)
  const packageName = type.includes('/') ? type : `@trilithon/${type}`
  state.problems.push(
    new TrilithonError(
      'PLUGIN_NOT_FOUND',
      candidate === undefined ? `no plugin "${type}" for \`${shown}\`` : `${candidate.name} is installed but does not claim \`${claimAt}\``,
      {
        path: joinPath(path, 'type'),
        source,
        hint:
          suggestion !== undefined
            ? `Did you mean "${suggestion}"?`
            : `Run: pnpm add ${packageName} (known here: ${types.join(', ') || 'none'}).`,
      },
    ),
  )
}

/** Which keys say that the table of a typed claim is not in use: all that are part of the composition, or none. */
function whyUnused(tree: TableNode, mounts: readonly Mount[], { inactive_when: conditions = [] }: KnownClaim): string[] {
  const told = conditions.flatMap(({ at, is }) => {
    const place = placeOf(mounts, at)
    if (place === undefined) return []
    const key = place.path.at(-1) ?? ''
    const schemas = schemasAt(place.mount.root.schema, place.path.slice(place.mount.at.length, -1))
    const byDefault = schemas.map((schema) => (shapeOf(schema).defaultValue as Record<string, unknown> | null | undefined)?.[key])[0]
    return [{ sentence: `\`${joinPath(place.path)}\` is "${is}"`, holds: (textOf(nodeAt(tree, place.path)) ?? byDefault) === is }]
  })
  return told.every(({ holds }) => holds) ? told.map(({ sentence }) => sentence) : []
}

function typesAt(claimAt: string, candidates: readonly PluginCandidate[], known: readonly KnownPlugin[]): string[] {
  const claims: readonly { at: string; type?: string | undefined }[] = [
    ...candidates.flatMap(({ manifest }) => manifest.claims),
    ...known.flatMap((plugin) => plugin.claims),
  ]
  return [...new Set(claims.flatMap(({ at, type }) => (at === claimAt && type !== undefined ? [type] : [])))]
}

function takeUntyped(state: State, mounts: readonly Mount[], candidate: PluginCandidate, claim: ManifestClaim): void {
  const place = placeOf(mounts, claim.at)?.path
  const taken = state.owned.find(
    ({ path, keys }) => place !== undefined && joinPath(path) === joinPath(place) && keys?.some((key) => claim.keys.includes(key)),
  )
  const key = taken?.keys?.find((one) => claim.keys.includes(one))
  if (taken !== undefined && place !== undefined && key !== undefined) {
    const path = [...place, key]
    state.problems.push(
      new TrilithonError('CLAIM_CONFLICT', `${taken.owner} and ${candidate.name} both claim \`${joinPath(path)}\``, {
        path: joinPath(path),
        source: sourceAt(state.written, path),
        hint: 'Remove one of the two plugins.',
      }),
    )
    return
  }
  const cut = cutKeys(state, mounts, candidate.name, claim.at, claim.keys, (key) => claim.inactive?.[key])
  if (cut !== undefined && cut.active.length > 0) addUse(state, candidate, { claim, path: cut.path, node: cut.node })
}

function takeAbsent(state: State, mounts: readonly Mount[], plugin: KnownPlugin, claim: KnownClaim): void {
  const cut = cutKeys(state, mounts, plugin.package, claim.at, Object.keys(claim.keys), (key) => claim.keys[key]?.inactive)
  if (cut !== undefined) state.absent.push({ plugin, claim, ...cut, unused: [] })
}

/** Takes the claimed keys out of every table that the claim names. */
function cutKeys(
  state: State,
  mounts: readonly Mount[],
  owner: string,
  at: string,
  keys: readonly string[],
  inactive: (key: string) => unknown,
): { path: ConfigPath; node: TableNode; active: string[] } | undefined {
  const place = placeOf(mounts, at)
  if (place === undefined) return undefined
  const table = nodeAt(state.tree, place.path)
  if (table?.kind !== 'table' && table !== undefined) return undefined
  const entries = new Map([...(table?.entries ?? [])].filter(([key]) => keys.includes(key)))
  for (const key of entries.keys()) state.tree = withNode(state.tree, [...place.path, key], undefined)
  if (entries.size > 0) state.owned.push({ owner, path: place.path, keys: [...entries.keys()] })
  const active = [...entries].flatMap(([key, value]) => (isInactive(value, inactive(key)) ? [] : [key]))
  return { path: place.path, node: { kind: 'table', entries, source: table?.source ?? sourceAt(state.tree, place.path) }, active }
}

function addUse(state: State, candidate: PluginCandidate, use: ClaimUse): void {
  state.uses.set(candidate, [...(state.uses.get(candidate) ?? []), use])
}

export function isNull(node: ConfigNode): boolean {
  return (node.kind === 'value' && node.value === null) || textOf(node) === 'None' || (node.kind === 'text' && node.negated)
}

function isBareFlag(node: ConfigNode): boolean {
  return node.kind === 'text' && node.words.length === 0 && !node.negated
}

/** Bare text has no type yet, so it is compared as text. */
export function isInactive(node: ConfigNode, inactive: unknown): boolean {
  if (inactive === undefined) return false
  if (isNull(node)) return inactive === null || inactive === false
  if (node.kind === 'text') return node.words.length === 1 && node.words[0]?.toLowerCase() === String(inactive).toLowerCase()
  return JSON.stringify(toPlain(node)) === JSON.stringify(inactive)
}
