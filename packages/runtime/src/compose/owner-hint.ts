import type { z } from 'zod'
import { elementOf, objectKeys, shapeOf, unionOptions } from '../config/shape.ts'
import { joinPath, splitPath } from '../config/tree.ts'
import type { OwnerHint } from '../config/validate.ts'
import type { KnownPlugin } from '../plugins/known-plugins.ts'
import { type Mount, placeOf } from './mount.ts'

interface Place {
  readonly table: string
  /** Who to install for it, where that is not a role. */
  readonly owner?: { readonly name: string; readonly built: boolean }
}

/** A key that many tables have says nothing by its name. */
const most = 4

/** For a key that is unknown where it stands: the table that it belongs to, and what to install where that is a package's. */
export function ownerHintOf(mounts: readonly Mount[], known: readonly KnownPlugin[]): OwnerHint {
  return (path) => {
    const place = splitPath(path)
    const key = place.at(-1) ?? ''
    const places = [...placesInRoles(mounts, key), ...placesInPackages(mounts, known, key)]
    if (places.length === 0 || places.length > most) return undefined
    const depth = ({ table }: Place) => splitPath(table).length
    const near = [...places].sort((a, b) => sharedParts(b.table, place) - sharedParts(a.table, place) || depth(a) - depth(b))
    const [best] = near
    if (best === undefined) return undefined
    const where = best.table === '' ? 'the top of the file' : `\`${best.table}\``
    if (best.owner === undefined) return `\`${key}\` is a key of ${where}.`
    const { name, built } = best.owner
    return `\`${key}\` is a key of ${where}, of ${name}${built ? `. Run: pnpm add ${name}` : ' (not built yet).'}`
  }
}

function placesInPackages(mounts: readonly Mount[], known: readonly KnownPlugin[], key: string): Place[] {
  return known.flatMap((plugin) =>
    plugin.claims
      .filter((claim) => Object.hasOwn(claim.keys, key))
      .map(({ at }) => ({
        table: joinPath(placeOf(mounts, at)?.path ?? splitPath(at)),
        owner: { name: plugin.package, built: plugin.built },
      })),
  )
}

function placesInRoles(mounts: readonly Mount[], key: string): Place[] {
  const tables = new Set<string>()
  const visit = (schema: z.core.$ZodType, path: string): void => {
    const { core } = shapeOf(schema)
    const element = elementOf(core)
    if (element !== undefined) visit(element, `${path}.*`)
    for (const option of unionOptions(core) ?? []) visit(option, path)
    for (const [name, below] of Object.entries(objectKeys(core) ?? {})) {
      if (name === key) tables.add(path)
      visit(below, joinPath(path, name))
    }
  }
  for (const { root, at } of mounts) visit(root.schema, joinPath(at))
  return [...tables].map((table) => ({ table }))
}

function sharedParts(table: string, path: readonly string[]): number {
  const parts = splitPath(table)
  const end = parts.findIndex((part, index) => part !== path[index])
  return end < 0 ? parts.length : end
}
