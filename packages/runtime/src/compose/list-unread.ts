import type { KeyMeta } from '@trilithon/core'
import type { z } from 'zod'
import { discriminatorOf, elementOf, objectKeys, recordValueOf, shapeOf, unionOptions, variantOf } from '../config/shape.ts'
import { type ConfigPath, joinPath, nodeAt, sourceAt, type TableNode } from '../config/tree.ts'
import type { IgnoredKey, UnavailableKey } from './composition.ts'
import type { Mount } from './mount.ts'

/**
 * Walks a parsed configuration and its schema together for keys that nobody here reads: a feature that is not built (`unavailable`, on a key or
 * on the variant of a union that is chosen) and what only an external backend reads (`externalOnly`). A feature at its default asks for nothing;
 * what an external backend alone reads is listed wherever it was written and does not say "off".
 */
export function listUnread(
  config: unknown,
  mount: Mount,
  written: TableNode,
): { readonly unavailable: readonly UnavailableKey[]; readonly ignored: readonly IgnoredKey[] } {
  const unavailable: UnavailableKey[] = []
  const ignored: IgnoredKey[] = []

  const refuse = (reason: string, path: ConfigPath, value: unknown) => {
    const place = [...mount.at, ...path]
    unavailable.push({
      path: joinPath(place),
      value,
      source: sourceAt(written, place),
      owner: mount.owner,
      reason: reason.replace(/\.$/, ''),
      hint: 'Remove the key, or wait for a release that has it.',
      code: 'FEATURE_UNAVAILABLE',
    })
  }
  const visit = (value: unknown, schema: z.core.$ZodType, path: ConfigPath): void => {
    const { core, meta, defaultValue } = shapeOf(schema)
    const { unavailable: reason, externalOnly } = meta as KeyMeta
    if (reason !== undefined || externalOnly !== undefined) {
      const place = [...mount.at, ...path]
      const asks = !isDefault(value, defaultValue, schema)
      if (reason !== undefined && asks) refuse(reason, path, value)
      // A default that somebody wrote is a wish, unless it switches something off.
      const wished = value !== null && value !== false && nodeAt(written, place) !== undefined
      if (externalOnly !== undefined && (asks || wished))
        ignored.push({ path: joinPath(place), value, source: sourceAt(written, place), reason: externalOnly.replace(/\.$/, '') })
    }
    const element = elementOf(core)
    if (Array.isArray(value)) {
      if (element !== undefined) for (const [index, item] of value.entries()) visit(item, element, [...path, String(index)])
      return
    }
    if (typeof value !== 'object' || value === null) return
    visitTable(value as Record<string, unknown>, core, path)
  }
  const visitTable = (table: Record<string, unknown>, core: z.core.$ZodType, path: ConfigPath): void => {
    const record = recordValueOf(core)
    const variant = unionOptions(core) === undefined ? core : chosenVariant(core, table)
    const shape = variant === undefined ? undefined : shapeOf(variant)
    if (variant !== core && shape !== undefined) {
      const { unavailable: reason } = shape.meta as KeyMeta
      const discriminator = discriminatorOf(core) ?? 'type'
      if (reason !== undefined) refuse(reason, [...path, discriminator], table[discriminator])
    }
    const keys = shape === undefined ? undefined : objectKeys(shape.core)
    for (const [key, item] of Object.entries(table)) {
      // Own keys only: a free key may be named `constructor`.
      const below = keys !== undefined && Object.hasOwn(keys, key) ? keys[key] : record
      if (below !== undefined) visit(item, below, [...path, key])
    }
  }
  visit(config, mount.root.schema, [])
  return { unavailable, ignored }
}

function chosenVariant(core: z.core.$ZodType, table: Record<string, unknown>): z.core.$ZodType | undefined {
  const discriminator = discriminatorOf(core)
  if (discriminator !== undefined) return variantOf(core, table[discriminator])
  return unionOptions(core)?.find((option) => objectKeys(shapeOf(option).core) !== undefined)
}

const defaults = new WeakMap<z.core.$ZodType, string | undefined>()

/** A default that is written out is as good as none. */
function isDefault(value: unknown, defaultValue: unknown, schema: z.core.$ZodType): boolean {
  if (!defaults.has(schema)) {
    const filled = schema._zod.run({ value: undefined, issues: [] }, { async: false, jitless: true })
    defaults.set(schema, JSON.stringify(filled instanceof Promise || filled.issues.length > 0 ? defaultValue : filled.value))
  }
  return JSON.stringify(value) === defaults.get(schema)
}
