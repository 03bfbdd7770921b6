import type { AnyPlugin, Claim, ConfigurationSlot } from '@trilithon/core'
import { z } from 'zod'
import { childSchemas, schemasAt } from '../config/shape.ts'
import { type ConfigPath, joinPath, splitPath } from '../config/tree.ts'
import { type KnownPlugin, schemaOfKnownClaim } from '../plugins/known-plugins.ts'
import type { Mount } from './mount.ts'

/** A plugin's table before the plugin is chosen: anything may stand in it. `slotType` is the type of a table that names none. */
const openTable = z.looseObject({ type: z.string() })
const slotTable = ({ defaultType, impliedType }: ConfigurationSlot) => openTable.meta({ slotType: impliedType ?? defaultType ?? '' })

/**
 * Schemas that the key at a tree path may have, whoever owns it: roles, built-in plugins, packages that are only known. Serves to read flags;
 * nothing is judged by it.
 */
export function lookupSchemas(
  mounts: readonly Mount[],
  plugins: readonly AnyPlugin[],
  known: readonly KnownPlugin[],
): (path: ConfigPath) => readonly z.core.$ZodType[] {
  const claims = [
    ...plugins.flatMap((plugin) => (plugin.claims as readonly Claim[]).map(({ at, type, keys }) => ({ at, type, keys: () => keys }))),
    ...known.flatMap((plugin) => plugin.claims.map((claim) => ({ at: claim.at, type: claim.type, keys: () => schemaOfKnownClaim(claim) }))),
  ]
  return (path) =>
    mounts.flatMap((mount) => {
      if (!mount.at.every((key, index) => path[index] === key)) return []
      const below = path.slice(mount.at.length)
      const own = schemasAt(mount.root.schema, below)
      if (below.length === 0) return own
      const slots = (mount.root.slots ?? []).filter((slot) => matches(splitPath(slot.at), below)).map(slotTable)
      const claimed = claims.flatMap(({ at, keys }) => {
        const place = splitPath(at)
        if (place[0] !== mount.root.name) return []
        const table = place.slice(1)
        if (table.length >= below.length || !matches(table, below.slice(0, table.length))) return []
        return schemasAt(keys(), below.slice(table.length))
      })
      // A key that nobody knows directly below a slot is the business of a plugin that is found later.
      const unknownBelowSlot = (mount.root.slots ?? []).some(
        (slot) => splitPath(slot.at).length < below.length && matches(splitPath(slot.at), below.slice(0, splitPath(slot.at).length)),
      )
      const found = [...own, ...slots, ...claimed]
      return found.length === 0 && unknownBelowSlot ? childSchemas(openTable, joinPath(below.at(-1) ?? '')) : found
    })
}

function matches(pattern: ConfigPath, path: ConfigPath): boolean {
  return (
    pattern.length === path.length &&
    pattern.every((part, index) => part === path[index] || (part === '*' && /^\d+$/.test(path[index] ?? '')))
  )
}
