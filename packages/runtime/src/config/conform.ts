import { TrilithonError } from '@trilithon/core'
import type { z } from 'zod'
import { childSchemas, choicesOf, discriminatorOf, elementOf, leafKinds, shapeOf, unionOptions, variantOf } from './shape.ts'
import { type ConfigNode, type ConfigPath, emptyTable, textOf } from './tree.ts'

/**
 * Makes a tree ready for its schema, without judging it: the string "None" becomes null, a table for a union gets the discriminator of the
 * field's default where it has none, and bare text of the command line becomes the type that the schema wants. What cannot be made to fit is
 * reported (flags) or left for the schema to report (files).
 */
export function conform(node: ConfigNode, schema: z.core.$ZodType, path: ConfigPath, problems: TrilithonError[]): ConfigNode {
  return conformAny(nullMarkers(node), [schema], path, problems)
}

function nullMarkers(node: ConfigNode): ConfigNode {
  switch (node.kind) {
    case 'table':
      return { ...node, entries: new Map([...node.entries].map(([key, value]) => [key, nullMarkers(value)])) }
    case 'list':
      return { ...node, items: node.items.map(nullMarkers) }
    default:
      return textOf(node) === 'None' ? { kind: 'value', value: null, source: node.source } : node
  }
}

function conformAny(node: ConfigNode, schemas: readonly z.core.$ZodType[], path: ConfigPath, problems: TrilithonError[]): ConfigNode {
  switch (node.kind) {
    case 'table':
      return conformTable(node, schemas, path, problems)
    case 'list': {
      const elements = schemas.flatMap((schema) => optionsOf(schema).flatMap((option) => elementOf(shapeOf(option).core) ?? []))
      return { ...node, items: node.items.map((item, index) => conformAny(item, elements, [...path, String(index)], problems)) }
    }
    case 'text':
      return conformText(node, schemas, path, problems)
    case 'value':
      return node
  }
}

function optionsOf(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  return unionOptions(shapeOf(schema).core)?.flatMap(optionsOf) ?? [schema]
}

function conformTable(
  node: Extract<ConfigNode, { kind: 'table' }>,
  schemas: readonly z.core.$ZodType[],
  path: ConfigPath,
  problems: TrilithonError[],
): ConfigNode {
  let entries = new Map(node.entries)
  let targets = schemas
  for (const schema of schemas) {
    const { core, defaultValue } = shapeOf(schema)
    const discriminator = discriminatorOf(core)
    if (discriminator === undefined) continue
    const fallback = (defaultValue as Record<string, unknown> | null | undefined)?.[discriminator]
    if (!entries.has(discriminator) && fallback !== undefined) {
      entries = new Map([[discriminator, { kind: 'value', value: fallback as string, source: node.source }], ...entries])
    }
    const variant = variantOf(core, textOf(entries.get(discriminator)))
    if (variant !== undefined) targets = [variant]
  }
  for (const [key, value] of entries) {
    const below = targets.flatMap((target) => childSchemas(target, key))
    entries.set(key, conformAny(value, below, [...path, key], problems))
  }
  return { ...node, entries }
}

function conformText(
  node: Extract<ConfigNode, { kind: 'text' }>,
  schemas: readonly z.core.$ZodType[],
  path: ConfigPath,
  problems: TrilithonError[],
): ConfigNode {
  const { words, negated, source } = node
  const shapes = schemas.map(shapeOf)
  const kinds = schemas.flatMap(leafKinds)
  const nullable = shapes.some((shape) => shape.nullable)
  const isTable = kinds.some((kind) => kind === 'object' || kind === 'record')
  const value = (plain: string | number | boolean | null): ConfigNode => ({ kind: 'value', value: plain, source })
  const refuse = (message: string, hint: string) => {
    problems.push(new TrilithonError('USAGE_INVALID', message, { path: path.join('.'), source, hint }))
    // Something of no type, so that the schema does not report the same flag a second time under another code.
    return { kind: 'text', words: [], negated: false, source } as const
  }
  // An unknown key is the schema's to report.
  if (schemas.length === 0) return words.length === 1 ? value(words[0] ?? '') : node

  if (negated) {
    if (nullable) return value(null)
    if (kinds.includes('boolean')) return value(false)
    return refuse('this key cannot be switched off', `Set it: --${path.join('.')} value.`)
  }
  if (words.length === 0) {
    if (kinds.includes('boolean')) return value(true)
    if (isTable) return emptyTable(source)
    // A shared key is refused where it arrives; its flag is the one that was written.
    const flag = source.kind === 'flag' ? source.flag : `--${path.join('.')}`
    return refuse(`${flag} needs a value`, `Write ${flag} value.`)
  }
  const elements = schemas.flatMap((schema) => optionsOf(schema).flatMap((option) => elementOf(shapeOf(option).core) ?? []))
  if (elements.length > 0 && (words.length > 1 || !kinds.some((kind) => kind === 'string'))) {
    return { kind: 'list', items: words.map((word) => conformText({ ...node, words: [word] }, elements, path, problems)), source }
  }
  if (words.length > 1) return refuse(`${words.length} values given where one is expected`, 'Quote a value that contains spaces.')
  const word = words[0] ?? ''
  if (isTable && !kinds.includes('string'))
    return refuse(`\`${word}\` is not a table`, `Set a key of it: --${path.join('.')}.key value, or give JSON.`)
  return value(coerce(word, kinds, schemas))
}

/** Bare text as the first of these types that the schema has and the text can be: choice, null, boolean, number, string. */
function coerce(word: string, kinds: readonly string[], schemas: readonly z.core.$ZodType[]): string | number | boolean | null {
  const choices = schemas.flatMap((schema) => optionsOf(schema).flatMap((option) => choicesOf(shapeOf(option).core) ?? []))
  if (choices.includes(word)) return word
  const free = kinds.some((kind) => kind === 'unknown' || kind === 'any' || kind === 'json' || kind === 'lazy')
  if ((free || kinds.includes('boolean')) && /^(true|false)$/i.test(word)) return word.toLowerCase() === 'true'
  const numeric = free || kinds.includes('number') || kinds.includes('int')
  if (numeric && /^[+-]?(\d[\d_]*)?(\.\d+)?(e[+-]?\d+)?$/i.test(word) && /\d/.test(word)) {
    const number = Number(word.replaceAll('_', ''))
    if (Number.isFinite(number)) return number
  }
  return word
}
