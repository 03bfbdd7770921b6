import type { z } from 'zod'
import { discriminatorOf, knownKeys, shapeOf, variantOf } from './shape.ts'
import { type ConfigNode, type ConfigPath, type TableNode, textOf } from './tree.ts'

export type SchemaLookup = (path: ConfigPath) => readonly z.core.$ZodType[]

/**
 * Lays a later table over an earlier one: tables key by key, everything else is replaced whole.
 *
 * A table that switches the variant of a union (another `type`) drops what only the old variant knows; a bare flag (`--wandb`) enables a table
 * and keeps what is in it; `--list.0.key` reaches into a list.
 */
export function overlay(below: ConfigNode | undefined, above: ConfigNode, path: ConfigPath, lookup: SchemaLookup): ConfigNode {
  if (above.kind === 'text' && above.words.length === 0 && !above.negated && below?.kind === 'table') return below
  if (below?.kind === 'list' && above.kind === 'table') return overlayItems(below, above, path, lookup)
  if (below?.kind !== 'table' || above.kind !== 'table') return above
  const entries = new Map(keptEntries(below, above, lookup(path)))
  for (const [key, value] of above.entries) entries.set(key, overlay(entries.get(key), value, [...path, key], lookup))
  return { ...below, entries }
}

function overlayItems(list: Extract<ConfigNode, { kind: 'list' }>, table: TableNode, path: ConfigPath, lookup: SchemaLookup): ConfigNode {
  const indices = [...table.entries.keys()]
  if (!indices.every((key) => /^\d+$/.test(key) && Number(key) < list.items.length)) return table
  const items = list.items.map((item, index) => {
    const above = table.entries.get(String(index))
    return above === undefined ? item : overlay(item, above, [...path, String(index)], lookup)
  })
  return { ...list, items }
}

/** What stays of the earlier table. */
function keptEntries(below: TableNode, above: TableNode, schemas: readonly z.core.$ZodType[]): Iterable<[string, ConfigNode]> {
  for (const schema of schemas) {
    const { core, defaultValue, meta } = shapeOf(schema)
    const discriminator = meta.slotType === undefined ? discriminatorOf(core) : 'type'
    if (discriminator === undefined) continue
    const chosen = textOf(above.entries.get(discriminator))
    const byDefault = meta.slotType ?? (defaultValue as Record<string, unknown> | null | undefined)?.[discriminator]
    const before = textOf(below.entries.get(discriminator)) ?? byDefault
    if (chosen === undefined || chosen === before) continue
    const oldVariant = variantOf(core, before)
    const newVariant = variantOf(core, chosen)
    // A key that neither variant knows stays, to be reported; of a plugin's table nothing is known, and nothing stays.
    const dropped = oldVariant === undefined ? new Set(below.entries.keys()) : new Set(knownKeys([oldVariant]))
    for (const key of newVariant === undefined ? [] : knownKeys([newVariant])) dropped.delete(key)
    return [...below.entries].filter(([key]) => !dropped.has(key))
  }
  return below.entries
}
