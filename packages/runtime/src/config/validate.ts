import { formatSource, TrilithonError } from '@trilithon/core'
import { z } from 'zod'
import { nearest } from './nearest.ts'
import { choicesOf, discriminatorOf, elementOf, kindOf, knownKeys, recordValueOf, schemasAt, shapeOf, unionOptions } from './shape.ts'
import { type ConfigNode, type ConfigPath, joinPath, nodeAt, sourceAt, toPlain } from './tree.ts'

/** Keys that somebody else owns, to be named in the hint of an unknown key. Full dotted path below the root. */
export type OwnerHint = (path: string) => string | undefined

/**
 * Checks a conformed tree against its schema and gives the typed value; one problem per fault, each at the place where it was written.
 *
 * `prefix` is where the tree lies below the root of the whole configuration; places that `reported` already names are not reported again.
 */
export function validate<Schema extends z.core.$ZodType>(
  node: ConfigNode,
  schema: Schema,
  prefix: ConfigPath,
  reported: ReadonlySet<string>,
  ownerHint: OwnerHint = () => undefined,
): { value: z.output<Schema> | undefined; problems: TrilithonError[] } {
  // Compiling a parser costs more than parsing once.
  const result = z.safeParse(schema, toPlain(node), { jitless: true })
  if (result.success) return { value: result.data, problems: [] }
  const problems = result.error.issues
    .flatMap((issue) => describeIssue(issue, node, schema, prefix, ownerHint))
    .filter((problem) => problem.path === undefined || !reported.has(problem.path))
  return { value: undefined, problems }
}

function describeIssue(
  issue: z.core.$ZodIssue,
  node: ConfigNode,
  schema: z.core.$ZodType,
  prefix: ConfigPath,
  ownerHint: OwnerHint,
): TrilithonError[] {
  const at = issue.path.map(String)
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(variantsAt(schema, node, at))
    return issue.keys.map((key) => unknownKey(key, at, known, node, prefix, ownerHint))
  }
  const path = joinPath(prefix, at)
  const source = sourceAt(node, at)
  const written = nodeAt(node, at)
  const schemas = schemasAt(schema, at)
  if (written === undefined) {
    const missing = new TrilithonError('CONFIG_VALUE_INVALID', `\`${path}\` is missing`, { path, source, hint: `Write ${path} = …` })
    return [missing]
  }
  const message = `\`${path}\` is ${show(toPlain(written))}, but must be ${describeExpectation(issue, schemas)}`
  return [new TrilithonError('CONFIG_VALUE_INVALID', message, { path, source, hint: hintFor(issue, schemas, written) })]
}

/** The member of a union that the tree's discriminator chose, else all of them. */
function variantsAt(schema: z.core.$ZodType, node: ConfigNode, at: ConfigPath): readonly z.core.$ZodType[] {
  return schemasAt(schema, at).flatMap((one) => {
    const { core } = shapeOf(one)
    const discriminator = discriminatorOf(core)
    const chosen = discriminator === undefined ? undefined : toPlain(nodeAt(node, [...at, discriminator]) ?? node)
    const fitting = unionOptions(core)?.filter((option) =>
      choicesOf(shapeOf(schemasAt(option, [discriminator ?? ''])[0] ?? option).core)?.includes(chosen),
    )
    return fitting !== undefined && fitting.length > 0 ? fitting : [one]
  })
}

function unknownKey(
  key: string,
  at: ConfigPath,
  known: readonly string[],
  node: ConfigNode,
  prefix: ConfigPath,
  ownerHint: OwnerHint,
): TrilithonError {
  const path = joinPath(prefix, at, key)
  const source = sourceAt(node, [...at, key])
  const suggestion = nearest(key, known)
  const place = joinPath(prefix, at)
  const hint =
    ownerHint(path) ??
    (suggestion !== undefined
      ? `Did you mean ${source.kind === 'flag' ? `--${joinPath(prefix, at, suggestion).replaceAll('_', '-')}` : `\`${suggestion}\``}?`
      : known.length > 0 && known.length <= 12
        ? `Known here: ${known.join(', ')}.`
        : 'Remove it, or see `trilithon schema` for the keys.')
  if (source.kind === 'flag') return new TrilithonError('USAGE_INVALID', `there is no flag ${formatSource(source)}`, { path, source, hint })
  return new TrilithonError('CONFIG_KEY_UNKNOWN', `\`${key}\` is not a key of ${place === '' ? 'this configuration' : `\`${place}\``}`, {
    path,
    source,
    hint,
  })
}

function show(value: unknown): string {
  if (value === null) return '"None"'
  if (typeof value === 'bigint') return `${value} (beyond 2^53)`
  const text = JSON.stringify(value) ?? String(value)
  const short = text.length > 60 ? `${text.slice(0, 57)}...` : text
  return typeof value === 'object' && value !== null
    ? `${Array.isArray(value) ? 'the list' : 'the table'} ${short}`
    : typeof value === 'number' && !Number.isFinite(value)
      ? String(value)
      : short
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a table',
  record: 'a table',
  null: 'None',
}

function describeExpectation(issue: z.core.$ZodIssue, schemas: readonly z.core.$ZodType[]): string {
  switch (issue.code) {
    case 'too_small':
    case 'too_big': {
      const low = issue.code === 'too_small'
      const bound = low ? issue.minimum : issue.maximum
      const unit = issue.origin === 'string' ? ' characters long' : issue.origin === 'array' ? ' items long' : ''
      return `${low ? (issue.inclusive ? 'at least' : 'greater than') : issue.inclusive ? 'at most' : 'less than'} ${bound}${unit}`
    }
    case 'invalid_value':
      return listOf(issue.values.map((value) => JSON.stringify(value)))
    case 'not_multiple_of':
      return `a multiple of ${issue.divisor}`
    case 'invalid_format':
    case 'custom':
      return issue.message.replace(/^must be /, '')
    default:
      return expectedTypes(schemas) || issue.message
  }
}

function expectedTypes(schemas: readonly z.core.$ZodType[]): string {
  const names = schemas.flatMap((schema) => {
    const { core, nullable } = shapeOf(schema)
    const options = unionOptions(core) ?? [core]
    const discriminator = discriminatorOf(core)
    if (discriminator !== undefined) {
      const choices = options.flatMap((option) => choicesOf(shapeOf(schemasAt(option, [discriminator])[0] ?? option).core) ?? [])
      return [`a table whose \`${discriminator}\` is ${listOf(choices.map((choice) => JSON.stringify(choice)))}`]
    }
    return [...options.flatMap(typeNamesOf), ...(nullable ? ['"None"'] : [])]
  })
  return listOf([...new Set(names)])
}

function typeNamesOf(schema: z.core.$ZodType): string[] {
  const { core } = shapeOf(schema)
  const choices = choicesOf(core)
  if (choices !== undefined) return choices.map((choice) => JSON.stringify(choice))
  if (elementOf(core) !== undefined) return ['a list']
  if (recordValueOf(core) !== undefined) return ['a table']
  const format = core._zod.def as { format?: string; checks?: readonly { _zod: { def: { format?: string } } }[] }
  const whole = format.format === 'safeint' || format.checks?.some((check) => check._zod.def.format === 'safeint') === true
  if (kindOf(core) === 'number') return [whole ? 'a whole number' : 'a number']
  const name = typeNames[kindOf(core)]
  return name === undefined ? [] : [name]
}

function listOf(names: readonly string[]): string {
  if (names.length <= 1) return names[0] ?? ''
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}

function hintFor(issue: z.core.$ZodIssue, schemas: readonly z.core.$ZodType[], written: ConfigNode): string {
  const value = written.kind === 'value' ? written.value : undefined
  if (issue.code === 'invalid_value' && typeof value === 'string') {
    const close = nearest(value, issue.values.map(String))
    if (close !== undefined) return `Did you mean "${close}"?`
  }
  const kinds = schemas.flatMap((schema) => (unionOptions(shapeOf(schema).core) ?? [shapeOf(schema).core]).map(kindOf))
  if (typeof value === 'string' && (kinds.includes('number') || kinds.includes('boolean')) && written.source.kind === 'file')
    return 'Write it without quotes.'
  const meta = schemas.map((schema) => shapeOf(schema).meta.description).find((description) => typeof description === 'string')
  return typeof meta === 'string' ? `The key means: ${meta.replace(/\.$/, '')}.` : 'Change the value.'
}
