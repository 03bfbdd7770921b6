import { z } from 'zod'
import type { KnownPluginClaim, KnownPluginSource } from './known-plugin.ts'

type Json = z.core.util.JSONType
type JsonObject = { [key: string]: Json }

/** What `known-plugins.json` holds: the claims as data, so that they can be read without running anything. */
export function writeKnownPlugins(sources: readonly KnownPluginSource[]): JsonObject[] {
  return sources.map(({ package: name, seam, built, claims }) => ({
    package: name,
    ...(seam === undefined ? {} : { seam }),
    built,
    claims: claims.map(claimAsJson),
  }))
}

function claimAsJson({ at, type, keys, inactiveWhen }: KnownPluginClaim): JsonObject {
  return {
    at,
    ...(type === undefined ? {} : { type }),
    ...(inactiveWhen === undefined ? {} : { inactive_when: inactiveWhen.map((one) => ({ ...one })) }),
    keys: Object.fromEntries(Object.entries(keys.shape).map(([key, schema]) => [key, keyAsJson(schema as z.ZodType)])),
  }
}

function keyAsJson(schema: z.ZodType): JsonObject {
  const { $schema: _, $defs: __, ...json } = z.toJSONSchema(schema, { io: 'input', override: simplify }) as JsonObject
  const { description, default: ___, ...rest } = json
  const whenLeftOut = schema.safeParse(undefined)
  return {
    schema: rest,
    ...(whenLeftOut.success ? { inactive: whenLeftOut.data as Json } : {}),
    description: description ?? '',
  }
}

/** Free values are `{}` instead of a recursive definition, whole numbers have no artificial bounds, and defaults of tables are complete. */
function simplify({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (zodSchema._zod.def.type === 'record') {
    const { valueType } = zodSchema._zod.def as { readonly valueType: z.core.$ZodType } & typeof zodSchema._zod.def
    // `z.json()` is a recursive definition of what JSON Schema calls `{}`.
    if (valueType._zod.def.type === 'lazy') jsonSchema.additionalProperties = {}
    delete jsonSchema.propertyNames
  }
  if (jsonSchema.default !== undefined) {
    const whole = (zodSchema as unknown as z.ZodType).safeParse(undefined)
    if (whole.success) jsonSchema.default = whole.data
  }
}
