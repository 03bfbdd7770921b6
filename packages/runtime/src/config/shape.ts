import { z } from 'zod'

/**
 * What a schema looks like from outside: the one place that reads zod's inner definitions.
 *
 * Metadata of wrappers and of what they wrap is joined, the outer one winning.
 */
export interface Shape {
  /** The schema without `nullable`, `optional`, `default`, `prefault` and `readonly` around it. */
  readonly core: z.core.$ZodType
  readonly nullable: boolean
  readonly hasDefault: boolean
  /** The default as it was written in the schema; undefined without one. */
  readonly defaultValue: unknown
  readonly meta: Readonly<Record<string, unknown>>
}

type Definition = { type: string; innerType?: z.core.$ZodType; defaultValue?: unknown }

function definitionOf(schema: z.core.$ZodType): Definition {
  return schema._zod.def as unknown as Definition
}

const shapes = new WeakMap<z.core.$ZodType, Shape>()

/** Of a schema that no longer changes; asked for at every key of every table, so each is looked at once. */
export function shapeOf(schema: z.core.$ZodType): Shape {
  const known = shapes.get(schema)
  if (known !== undefined) return known
  const shape = lookAt(schema)
  shapes.set(schema, shape)
  return shape
}

function lookAt(schema: z.core.$ZodType): Shape {
  let core = schema
  let nullable = false
  let hasDefault = false
  let defaultValue: unknown
  let meta: Record<string, unknown> = { ...z.globalRegistry.get(core) }
  for (;;) {
    const definition = definitionOf(core)
    // JSON Schema has no `nullable`: there it is a union of one thing and null.
    const others = definition.type === 'union' ? unionOptions(core)?.filter((option) => definitionOf(option).type !== 'null') : undefined
    if (others?.length === 1 && others.length < (unionOptions(core)?.length ?? 0) && others[0] !== undefined) {
      nullable = true
      core = others[0]
      meta = { ...z.globalRegistry.get(core), ...meta }
      continue
    }
    if (
      definition.innerType === undefined ||
      !['nullable', 'optional', 'default', 'prefault', 'readonly', 'nonoptional'].includes(definition.type)
    )
      break
    if (definition.type === 'nullable') nullable = true
    if ((definition.type === 'default' || definition.type === 'prefault') && !hasDefault) {
      hasDefault = true
      defaultValue = definition.defaultValue
    }
    core = definition.innerType
    meta = { ...z.globalRegistry.get(core), ...meta }
  }
  return { core, nullable, hasDefault, defaultValue, meta }
}

export function kindOf(core: z.core.$ZodType): string {
  return definitionOf(core).type
}

/** Keys of an object schema with their schemas; undefined for any other schema. */
export function objectKeys(core: z.core.$ZodType): Readonly<Record<string, z.core.$ZodType>> | undefined {
  return kindOf(core) === 'object' ? (core._zod.def as z.core.$ZodObjectDef).shape : undefined
}

/** Members of a union; undefined for any other schema. */
export function unionOptions(core: z.core.$ZodType): readonly z.core.$ZodType[] | undefined {
  return kindOf(core) === 'union' ? (core._zod.def as z.core.$ZodUnionDef).options : undefined
}

/** Name of the key that tells the members of a discriminated union apart. */
export function discriminatorOf(core: z.core.$ZodType): string | undefined {
  return (core._zod.def as { discriminator?: string }).discriminator
}

export function elementOf(core: z.core.$ZodType): z.core.$ZodType | undefined {
  return kindOf(core) === 'array' ? (core._zod.def as z.core.$ZodArrayDef).element : undefined
}

export function recordValueOf(core: z.core.$ZodType): z.core.$ZodType | undefined {
  return kindOf(core) === 'record' ? (core._zod.def as z.core.$ZodRecordDef).valueType : undefined
}

/** The values of a literal or an enum. */
export function choicesOf(core: z.core.$ZodType): readonly unknown[] | undefined {
  const definition = core._zod.def as { type: string; values?: unknown[]; entries?: Record<string, unknown> }
  if (definition.type === 'literal') return definition.values
  return definition.type === 'enum' ? Object.values(definition.entries ?? {}) : undefined
}

/** The member of a discriminated union that a value of its discriminator selects. */
export function variantOf(core: z.core.$ZodType, choice: unknown): z.core.$ZodType | undefined {
  const discriminator = discriminatorOf(core)
  if (discriminator === undefined) return undefined
  return unionOptions(core)?.find((option) => {
    const key = objectKeys(shapeOf(option).core)?.[discriminator]
    return key !== undefined && (choicesOf(shapeOf(key).core)?.includes(choice) ?? false)
  })
}

/**
 * Schemas that a key below `schema` may have: several for a union, none for an unknown key. An index or `*` names an item of a list.
 */
export function childSchemas(schema: z.core.$ZodType, key: string): readonly z.core.$ZodType[] {
  const { core } = shapeOf(schema)
  const options = unionOptions(core)
  if (options !== undefined) return options.flatMap((option) => childSchemas(option, key))
  const element = elementOf(core)
  if (element !== undefined) return key === '*' || /^\d+$/.test(key) ? [element] : []
  const value = recordValueOf(core)
  if (value !== undefined) return [value]
  const keys = objectKeys(core)
  // Own keys only: a file may name a key `__proto__` or `constructor`.
  const found = keys !== undefined && Object.hasOwn(keys, key) ? keys[key] : undefined
  return found === undefined ? [] : [found]
}

/** Schemas at a path below `schema`. */
export function schemasAt(schema: z.core.$ZodType, path: readonly string[]): readonly z.core.$ZodType[] {
  let schemas: readonly z.core.$ZodType[] = [schema]
  for (const key of path) schemas = schemas.flatMap((one) => childSchemas(one, key))
  return schemas
}

/** All keys that are known directly below any of the schemas. */
export function knownKeys(schemas: readonly z.core.$ZodType[]): string[] {
  const keys = schemas.flatMap((schema) => {
    const { core } = shapeOf(schema)
    return unionOptions(core)?.flatMap((option) => knownKeys([option])) ?? Object.keys(objectKeys(core) ?? {})
  })
  return [...new Set(keys)]
}

/** What may stand at a place, coarsely: decides how a flag's words are read. */
export type Expectation = 'table' | 'list' | 'boolean' | 'scalar' | 'unknown'

export function expectationOf(schemas: readonly z.core.$ZodType[]): Expectation {
  const kinds = schemas.flatMap((schema) => leafKinds(schema))
  if (kinds.some((kind) => kind === 'object' || kind === 'record')) return 'table'
  if (kinds.includes('array')) return 'list'
  if (kinds.includes('boolean')) return 'boolean'
  return kinds.length > 0 && !kinds.every((kind) => kind === 'unknown' || kind === 'any') ? 'scalar' : 'unknown'
}

/** Kinds of a schema, the members of unions spread out. */
export function leafKinds(schema: z.core.$ZodType): string[] {
  const { core } = shapeOf(schema)
  return unionOptions(core)?.flatMap(leafKinds) ?? [kindOf(core)]
}
