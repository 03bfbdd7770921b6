import type { z } from 'zod'
import { choicesOf, discriminatorOf, elementOf, kindOf, objectKeys, recordValueOf, shapeOf, unionOptions } from '../config/shape.ts'

type Schema = z.core.$ZodType

/** The type of a key in words: `integer >= 1, or "None"`. */
export function typeText(schema: Schema): string {
  const { core, nullable } = shapeOf(schema)
  const names = namesOf(core)
  return [...new Set(nullable ? [...names, '`"None"`'] : names)].join(' or ')
}

function namesOf(core: Schema): string[] {
  const choices = choicesOf(core)
  if (choices !== undefined) return choices.map((choice) => `\`${JSON.stringify(choice)}\``)
  const discriminator = discriminatorOf(core)
  const options = unionOptions(core)
  if (discriminator !== undefined) return [`table, by \`${discriminator}\``]
  if (options !== undefined) return options.flatMap((option) => namesOf(shapeOf(option).core))
  const element = elementOf(core)
  if (element !== undefined) {
    const items = namesOf(shapeOf(element).core)
    return [`list of ${items.length > 1 ? `(${items.join(' or ')})` : (items[0] ?? 'anything')}`]
  }
  if (objectKeys(core) !== undefined) return ['table']
  const value = recordValueOf(core)
  if (value !== undefined) return [`table of ${namesOf(shapeOf(value).core)[0] ?? 'anything'}`]
  switch (kindOf(core)) {
    case 'string':
      return ['string']
    case 'boolean':
      return ['boolean']
    case 'number':
      return [numberText(core)]
    default:
      return ['anything']
  }
}

interface Check {
  readonly check: string
  readonly value?: number
  readonly inclusive?: boolean
  readonly format?: string
}

function numberText(core: Schema): string {
  const { format, checks = [] } = core._zod.def as unknown as { format?: string; checks?: readonly { _zod: { def: Check } }[] }
  const all = checks.map(({ _zod }) => _zod.def)
  const whole = format === 'safeint' || all.some((check) => check.format === 'safeint')
  const bounds = all.flatMap(({ check, value, inclusive }) => {
    if (value === undefined || Math.abs(value) >= Number.MAX_SAFE_INTEGER) return []
    if (check === 'greater_than') return [`${inclusive === true ? '>=' : '>'} ${value}`]
    return check === 'less_than' ? [`${inclusive === true ? '<=' : '<'} ${value}`] : []
  })
  return `${whole ? 'integer' : 'number'}${bounds.length === 0 ? '' : ` ${bounds.join(', ')}`}`
}

/** The default of a key as a file would spell it. */
export function defaultText(schema: Schema): string {
  const { hasDefault, defaultValue, core } = shapeOf(schema)
  if (!hasDefault) return (schema._zod.def as { type: string }).type === 'optional' ? 'none' : 'required'
  const text = inline(defaultValue, discriminatorOf(core))
  return text === '' ? 'the table below' : `\`${text}\``
}

function inline(value: unknown, discriminator: string | undefined): string {
  if (value === null) return '"None"'
  if (Array.isArray(value)) return `[${value.map((item) => inline(item, undefined) || '{}').join(', ')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  const entries = Object.entries(value as Record<string, unknown>)
  if (entries.length === 0) return ''
  if (discriminator !== undefined && entries.length === 1) return JSON.stringify(entries[0]?.[1])
  return `{ ${entries.map(([key, item]) => `${/^[\w-]+$/.test(key) ? key : JSON.stringify(key)} = ${inline(item, undefined) || '{}'}`).join(', ')} }`
}

/** The word that chooses a member of a union. */
export function variantName(option: Schema, discriminator: string): unknown {
  const key = objectKeys(shapeOf(option).core)?.[discriminator]
  return key === undefined ? undefined : choicesOf(shapeOf(key).core)?.[0]
}
