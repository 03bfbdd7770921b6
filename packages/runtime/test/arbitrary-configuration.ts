import type { Claim } from '@trilithon/core'
import fc from 'fast-check'
import { z } from 'zod'
import type { Mount } from '../src/compose/mount.ts'
import { choicesOf, elementOf, kindOf, objectKeys, recordValueOf, shapeOf, unionOptions } from '../src/config/shape.ts'
import { splitPath } from '../src/config/tree.ts'
import { builtInPlugins } from '../src/plugins/built-in.ts'
import { knownPlugins, schemaOfKnownClaim } from '../src/plugins/known-plugins.ts'

type Schema = z.core.$ZodType
type Plain = Record<string, unknown>

/** Strings that some format or some reader takes for something else. */
const awkward = [
  'null',
  'true',
  '1e5',
  '0x10',
  '[a]',
  '{x}',
  'a: b',
  '',
  ' ',
  '@x',
  '-1',
  '--x',
  '~',
  '1979-05-27',
  '"q"',
  "'",
  '\\',
  '\u007f',
  '\n',
  'ä\u{1f600}',
  '# c',
  'none',
  'NONE',
]
// TOML has no null, so this one string means null; it is the only one that a file cannot hold.
const expressible = (text: string) => text !== 'None' && isWellFormed(text)
const isWellFormed = (text: string) => !/[\ud800-\udfff]/u.test(text)
const text = fc.oneof(fc.constantFrom(...awkward), fc.string({ unit: 'binary', maxLength: 8 })).filter(expressible)
const key = text.filter((name) => name !== '__proto__')

/** Any JSON value. */
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    fc.oneof(fc.constant(null), fc.boolean(), fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }).map(positiveZero), text),
    fc.array(tie('value'), { maxLength: 2 }),
    fc.dictionary(key, tie('value'), { maxKeys: 2 }),
  ),
})).value

// JSON and TOML integers have one zero.
function positiveZero(value: number): number {
  return value === 0 ? 0 : value
}

/** Complete, valid values of a schema: every key present, every variant and null in turn. */
export function arbitraryOf(schema: Schema): fc.Arbitrary<unknown> {
  const { core, nullable } = shapeOf(schema)
  const value = arbitraryOfCore(core)
  return nullable ? fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight: 3, arbitrary: value }) : value
}

function arbitraryOfCore(core: Schema): fc.Arbitrary<unknown> {
  const options = unionOptions(core)
  if (options !== undefined) return fc.oneof(...options.map(arbitraryOf))
  const choices = choicesOf(core)
  if (choices !== undefined) return fc.constantFrom(...choices)
  const keys = objectKeys(core)
  if (keys !== undefined) return objectOf(core, keys)
  const element = elementOf(core)
  if (element !== undefined)
    return fc.array(arbitraryOf(element), { minLength: boundsOf(core).minimum ?? 0, maxLength: 2 }).filter(fits(core))
  const item = recordValueOf(core)
  if (item !== undefined) return fc.dictionary(key, arbitraryOf(item), { maxKeys: 3 })
  switch (kindOf(core)) {
    case 'boolean':
      return fc.boolean()
    case 'number':
      return numberOf(core)
    case 'string':
      return stringOf(core)
    default:
      return json
  }
}

function objectOf(core: Schema, keys: Readonly<Record<string, Schema>>): fc.Arbitrary<unknown> {
  const isOptional = (schema: Schema) => (schema._zod.def as { type: string }).type === 'optional' && !shapeOf(schema).hasDefault
  const required = Object.keys(keys).filter((name) => keys[name] !== undefined && !isOptional(keys[name]))
  const whole = fc.record(Object.fromEntries(Object.entries(keys).map(([name, schema]) => [name, arbitraryOf(schema)])), {
    requiredKeys: required,
  })
  const isLoose = kindOf((core._zod.def as { catchall?: Schema }).catchall ?? z.never()) === 'unknown'
  if (!isLoose) return whole
  return fc
    .tuple(
      whole,
      fc.dictionary(
        key.filter((name) => !Object.hasOwn(keys, name)),
        json,
        { maxKeys: 2 },
      ),
    )
    .map(([own, more]) => ({ ...own, ...more }))
}

interface Bounds {
  minimum?: number
  maximum?: number
  pattern?: RegExp
  isWhole: boolean
}

/** The checks of a schema, as far as they help to make values; `fits` has the last word. */
function boundsOf(core: Schema): Bounds {
  const definition = core._zod.def as unknown as { format?: string; checks?: readonly { _zod: { def: Record<string, unknown> } }[] }
  const bounds: Bounds = { isWhole: definition.format === 'safeint' }
  for (const { _zod } of definition.checks ?? []) {
    const { check, value, minimum, pattern, format } = _zod.def
    if (check === 'greater_than') bounds.minimum = value as number
    if (check === 'less_than') bounds.maximum = value as number
    if (check === 'min_length') bounds.minimum = minimum as number
    if (pattern instanceof RegExp) bounds.pattern = pattern
    if (format === 'safeint') bounds.isWhole = true
  }
  return bounds
}

const fits = (core: Schema) => (value: unknown) => z.safeParse(core, value).success

function numberOf(core: Schema): fc.Arbitrary<number> {
  const { minimum, maximum, isWhole } = boundsOf(core)
  const low = minimum ?? (isWhole ? Number.MIN_SAFE_INTEGER : -Number.MAX_VALUE)
  const high = maximum ?? (isWhole ? Number.MAX_SAFE_INTEGER : Number.MAX_VALUE)
  const small = fc.integer({ min: Math.ceil(Math.max(low, -1000)), max: Math.floor(Math.min(high, Math.max(low, 0) + 1000)) })
  const any = isWhole ? fc.maxSafeInteger() : fc.double({ min: low, max: high, noNaN: true, noDefaultInfinity: true })
  return fc.oneof(small, any).map(positiveZero).filter(fits(core))
}

function stringOf(core: Schema): fc.Arbitrary<string> {
  const { pattern } = boundsOf(core)
  if (pattern === undefined) return text.filter(fits(core))
  const words = /^\^\(([\w|]+)\)\$$/.exec(pattern.source)?.[1]?.split('|')
  return words === undefined ? fc.stringMatching(pattern).filter(fits(core)) : fc.constantFrom(...words)
}

interface KeyedClaim {
  readonly at: string
  readonly type: string | undefined
  readonly keys: z.ZodObject
}

/** Claims of built-in plugins and of packages that are only known. */
export function allClaims(): KeyedClaim[] {
  return [
    ...builtInPlugins.flatMap((plugin) => (plugin.claims as readonly Claim[]).map(({ at, type, keys }) => ({ at, type, keys }))),
    ...knownPlugins().flatMap((plugin) =>
      plugin.claims.map((claim) => ({ at: claim.at, type: claim.type, keys: schemaOfKnownClaim(claim) })),
    ),
  ]
}

/** Complete configurations of a root: its own keys, the keys that plugins claim, and plugins in the slots. */
export function arbitraryRoot({ root }: Pick<Mount, 'root'>): fc.Arbitrary<Plain> {
  const own = allClaims().filter(({ at }) => splitPath(at)[0] === root.name)
  const parts: fc.Arbitrary<(config: Plain) => Plain>[] = []
  // An outer slot is filled before the one that lies in it.
  const slots = [...(root.slots ?? [])].sort((a, b) => a.at.length - b.at.length)
  for (const { at, defaultType } of slots) {
    const variants = own.filter((claim) => claim.type !== undefined && splitPath(claim.at).slice(1).join('.') === at)
    const filled = variants.map(({ type, keys }) => arbitraryOf(keys).map((value) => accepted({ type, ...(value as Plain) })))
    const keeps = fc.constant(undefined)
    parts.push(
      fc.oneof(keeps, ...(defaultType === null ? [fc.constant(null)] : []), ...filled).map((value) => (config: Plain) => {
        if (value === undefined) return defaultType === null || splitPath(at).length > 1 ? config : fillDefault(config, at, defaultType)
        return value === null ? config : setAt(config, splitPath(at), value)
      }),
    )
  }
  for (const claim of own) {
    if (claim.type !== undefined) continue
    parts.push(arbitraryOf(claim.keys).map((value) => (config: Plain) => mergeAt(config, splitPath(claim.at).slice(1), value as Plain)))
  }
  return fc
    .tuple(arbitraryOf(root.schema), ...parts)
    .map(([config, ...changes]) => changes.reduce<Plain>((current, change) => change(current), { ...(config as Plain), plugins: [] }))
}

/** The built-in store has a rule of its own: no disk tier yet. */
function accepted(slot: Plain): Plain {
  return slot.type === 'native' ? { ...slot, disk: null } : slot
}

/** A slot without a key of the role (`orchestrator.router`) is filled by its default plugin. */
function fillDefault(config: Plain, at: string, type: string): Plain {
  return at in config ? config : { ...config, [at]: { type, ...defaultKeys(at, type) } }
}

function defaultKeys(at: string, type: string): Plain {
  const claim = allClaims().find((one) => one.type === type && one.at.endsWith(at))
  return (claim?.keys.parse({}) as Plain | undefined) ?? {}
}

function setAt(config: unknown, path: readonly string[], value: unknown): Plain {
  const [head = '', ...rest] = path
  const table = config as Plain
  return { ...table, [head]: rest.length === 0 ? value : setAt(table[head], rest, value) }
}

/** Keys of a claim go into their table where that is there. */
function mergeAt(config: Plain, path: readonly string[], value: Plain): Plain {
  const [head, ...rest] = path
  if (head === undefined) return { ...config, ...value }
  const child = config[head]
  if (typeof child !== 'object' || child === null) return config
  return { ...config, [head]: mergeAt(child as Plain, rest, value) }
}
