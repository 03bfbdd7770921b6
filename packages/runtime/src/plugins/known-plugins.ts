import { readFileSync } from 'node:fs'
import { z } from 'zod'

/**
 * Keys of the configuration surface whose package is not part of this installation. Each keeps its schema and the value that means "not
 * used", so that files load, values are checked today, and the message can say what to install.
 */
export const KnownPlugin = z.strictObject({
  package: z.string(),
  /** Id of the seam that it fills, where that has a name already. */
  seam: z.string().optional(),
  /** Whether the package can be installed today. */
  built: z.boolean(),
  claims: z.array(
    z.strictObject({
      at: z.string(),
      type: z.string().optional(),
      /**
       * A typed claim is not used, although its table is there, where every key at these paths (from the name of its root) that is part of
       * the composition has that value.
       */
      inactive_when: z.array(z.strictObject({ at: z.string(), is: z.string() })).optional(),
      /** Without `inactive`, a key must be written in its table and is always in use. */
      keys: z.record(
        z.string(),
        z.strictObject({ schema: z.record(z.string(), z.json()), inactive: z.json().optional(), description: z.string() }),
      ),
    }),
  ),
})
export type KnownPlugin = z.infer<typeof KnownPlugin>
export type KnownClaim = KnownPlugin['claims'][number]

let loaded: readonly KnownPlugin[] | undefined

/** The shipped list, `known-plugins.json` beside the package's `package.json`; read once. A test, not every start, holds it to its schema. */
export function knownPlugins(): readonly KnownPlugin[] {
  loaded ??= JSON.parse(readFileSync(new URL('../../known-plugins.json', import.meta.url), 'utf8')) as KnownPlugin[]
  return loaded
}

const schemas = new WeakMap<KnownClaim, z.ZodObject>()

/** Strict schema of a known claim's keys, each with its inactive value as default. Made once per claim: it is asked for at every key. */
export function schemaOfKnownClaim(claim: KnownClaim): z.ZodObject {
  const known = schemas.get(claim)
  if (known !== undefined) return known
  const shape: Record<string, z.ZodType> = {}
  for (const [key, { schema, inactive, description }] of Object.entries(claim.keys)) {
    const parsed = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0])
    shape[key] = (inactive === undefined ? parsed : parsed.default(inactive)).describe(description)
  }
  const made = z.strictObject(shape)
  schemas.set(claim, made)
  return made
}
