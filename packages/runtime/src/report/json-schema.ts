import type { Claim, ConfigurationSlot } from '@trilithon/core'
import { z } from 'zod'
import { findRoot, type RootName } from '../compose/root-definitions.ts'
import { discriminatorOf, kindOf, recordValueOf, shapeOf } from '../config/shape.ts'
import { splitPath } from '../config/tree.ts'
import { builtInPlugins } from '../plugins/built-in.ts'
import { knownPlugins, schemaOfKnownClaim } from '../plugins/known-plugins.ts'

type JsonSchema = z.core.JSONSchema.JSONSchema

/**
 * JSON Schema (draft 2020-12) of the files of a root, as users write them: every key optional, "None" wherever null is allowed, a union without
 * its discriminator, other spellings of keys, tables of plugins.
 */
export function jsonSchemaOf(rootName: RootName): JsonSchema {
  const { mounts, summary } = findRoot(rootName)
  const whole: JsonSchema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: `trilithon ${rootName}`,
    description: summary,
    type: 'object',
    properties: {},
    additionalProperties: false,
  }
  for (const { root, at } of [...mounts].sort((a, b) => a.at.length - b.at.length)) {
    const own = plain(root.schema)
    addClaims(own, root.name)
    for (const slot of root.slots ?? []) addSlot(own, root.name, slot)
    for (const { from, to } of root.moves ?? []) addMove(own, splitPath(from), splitPath(to))
    if (at.length === 0) {
      Object.assign(propertiesOf(whole), own.properties)
    } else propertiesOf(whole)[at.join('.')] = own
  }
  propertiesOf(whole)['@'] = {
    description: 'Files that this one stands on, relative to it.',
    anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }],
  }
  return whole
}

function plain(schema: z.ZodType): JsonSchema {
  const {
    $schema: _,
    $defs: __,
    ...converted
  } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      // A file may leave the discriminator out: the default's variant is meant.
      const { core } = shapeOf(zodSchema)
      const discriminator = discriminatorOf(core)
      const options = (jsonSchema.oneOf ?? jsonSchema.anyOf) as JsonSchema[] | undefined
      if (kindOf(core) === 'union' && discriminator !== undefined && options !== undefined) {
        delete jsonSchema.oneOf
        jsonSchema.anyOf = options.map((option) => ({
          ...option,
          required: (option.required ?? []).filter((key) => key !== discriminator),
        }))
      }
      // Free values are `{}` instead of a definition that refers to itself.
      const value = recordValueOf(zodSchema)
      if (value !== undefined && kindOf(value) === 'lazy') jsonSchema.additionalProperties = {}
      if (value !== undefined) delete jsonSchema.propertyNames
      if (kindOf(zodSchema) === 'nullable' && Array.isArray(jsonSchema.anyOf)) jsonSchema.anyOf.push({ const: 'None' })
    },
  })
  return converted as JsonSchema
}

function propertiesOf(schema: JsonSchema): Record<string, JsonSchema> {
  schema.properties ??= {}
  return schema.properties as Record<string, JsonSchema>
}

/** What a key (`*` for an item) may be below a schema: through nullable tables and members of unions. */
function below(schema: JsonSchema, key: string): JsonSchema[] {
  return [schema, ...((schema.anyOf ?? []) as JsonSchema[])].flatMap((one) => {
    const next = key === '*' ? (one.items as JsonSchema | undefined) : (one.properties as Record<string, JsonSchema> | undefined)?.[key]
    return next === undefined ? [] : [next]
  })
}

/** The object schemas at a path. */
function tablesAt(schema: JsonSchema, path: readonly string[]): JsonSchema[] {
  const [key, ...rest] = path
  if (key !== undefined) return below(schema, key).flatMap((next) => tablesAt(next, rest))
  return [schema, ...((schema.anyOf ?? []) as JsonSchema[])].filter(({ type }) => type === 'object')
}

/** Keys of plugins without `type`, at their tables. */
function addClaims(own: JsonSchema, rootName: string): void {
  for (const { at, type, keys } of allClaims()) {
    const [root, ...table] = splitPath(at)
    if (root !== rootName || type !== undefined) continue
    for (const place of tablesAt(own, table)) Object.assign(propertiesOf(place), plain(keys()).properties)
  }
}

/** A slot takes the variants that are known and any other `type`, since a plugin may be installed that this list does not know. */
function addSlot(own: JsonSchema, rootName: string, slot: ConfigurationSlot): void {
  const path = splitPath(slot.at)
  const key = path.at(-1) ?? ''
  const variants = allClaims().flatMap(({ at, type, keys }): JsonSchema[] => {
    if (at !== `${rootName}.${slot.at}` || type === undefined) return []
    const table = plain(keys())
    return [{ ...table, properties: { type: { const: type }, ...table.properties }, required: [] }]
  })
  for (const place of tablesAt(own, path.slice(0, -1))) {
    const existing = propertiesOf(place)[key]
    const known = existing === undefined ? [] : ((existing.anyOf as JsonSchema[] | undefined) ?? [existing])
    const taken = [...known, ...variants].flatMap((one) => (propertiesOf(one).type as { const?: string } | undefined)?.const ?? [])
    const empty: JsonSchema[] = slot.defaultType === null ? [{ const: 'None' }] : []
    const other: JsonSchema = { type: 'object', properties: { type: { type: 'string', not: { enum: taken } } }, required: ['type'] }
    propertiesOf(place)[key] = { description: slot.description, anyOf: [...known, ...variants, other, ...empty] }
  }
}

/** An older spelling takes what its present place takes. */
function addMove(own: JsonSchema, from: readonly string[], to: readonly string[]): void {
  const key = to.at(-1) ?? ''
  const target = tablesAt(own, to.slice(0, -1)).flatMap(
    (table) => (table.properties as Record<string, JsonSchema> | undefined)?.[key] ?? [],
  )[0] as JsonSchema | undefined
  if (target === undefined) return
  const tables = from.slice(0, -1).reduce<JsonSchema[]>(
    (schemas, part) =>
      schemas.flatMap((schema) => {
        const found = below(schema, part)
        if (found.length > 0 || part === '*' || schema.type !== 'object') return found
        const made: JsonSchema = { type: 'object', properties: {} }
        propertiesOf(schema)[part] = made
        return [made]
      }),
    [own],
  )
  for (const table of tables.flatMap((one) => tablesAt(one, []))) propertiesOf(table)[from.at(-1) ?? ''] ??= target
}

function allClaims(): { at: string; type: string | undefined; keys: () => z.ZodObject }[] {
  return [
    ...builtInPlugins.flatMap((plugin) =>
      (plugin.claims as readonly Claim[]).map(({ at, type, keys }) => ({ at, type, keys: () => keys })),
    ),
    ...knownPlugins().flatMap((plugin) =>
      plugin.claims.map((claim) => ({ at: claim.at, type: claim.type, keys: () => schemaOfKnownClaim(claim) })),
    ),
  ]
}
