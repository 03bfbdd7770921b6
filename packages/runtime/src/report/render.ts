import { stripVTControlCharacters, styleText } from 'node:util'
import { formatSource, type TrilithonError } from '@trilithon/core'
import type { CompositionReport } from './composition-report.ts'

export interface RenderOptions {
  /** Colours, for a terminal only. */
  readonly colors: boolean
}

type Style = Parameters<typeof styleText>[0]

function painter({ colors }: RenderOptions): (style: Style, text: string) => string {
  // The caller has looked at its stream; Node would look at standard output instead.
  return (style, text) => (colors ? styleText(style, text, { validateStream: false }) : stripVTControlCharacters(text))
}

/** The dry run's text: what was read, who takes what, what is missing here. */
export function renderReport(report: CompositionReport, options: RenderOptions): string {
  const paint = painter(options)
  const lines: string[] = []
  const section = <T>(title: string, items: readonly T[], render: (items: readonly T[]) => readonly string[]) => {
    if (items.length > 0) lines.push('', paint('bold', title), ...render(items))
  }
  lines.push(paint('bold', `trilithon ${report.root}: the configuration is sound`))
  lines.push(`  files  ${report.files.join(', ') || 'none (defaults only)'}`)
  lines.push(`  roles  ${report.roles.map(({ name, built }) => (built ? name : `${name} (not built yet)`)).join(', ')}`)
  const ranks = ranksText(report.ranks)
  if (ranks !== '') lines.push(`  ranks  ${ranks}`)

  section('Plugins', report.plugins, (plugins) => pluginLines(plugins, paint))
  section('Keys by owner', Object.entries(report.owners), (owners) => ownerLines(owners, paint))
  section('Not available here: a real start stops at these', report.unavailable, (keys) =>
    groupBy(keys, ({ hint }) => hint).flatMap(([hint, alike]) => [
      ...groupBy(alike, ({ code, reason }) => `  ${code}  ${capitalised(reason)}.`).flatMap(([head, group]) => [head, ...keyLines(group)]),
      `  ${hint}`,
    ]),
  )
  section('Ignored: only an external backend reads these', report.ignored, (keys) =>
    groupBy(keys, ({ reason }) => `  ${capitalised(reason)}.`).flatMap(([head, group]) => [head, ...keyLines(group)]),
  )
  section('Overruled: these keys have another value or no effect', report.overruled, (keys) =>
    keys.flatMap(({ path, given, used, source, reason }) => [
      `  ${source}  ${path} = ${show(given)}${same(given, used) ? '' : `; ${show(used)} is used`}`,
      ...(reason === null ? [] : [`    ${reason}`]),
    ]),
  )
  section('Notes', report.notices, (notices) => notices.map((notice) => `  ${notice}`))
  section('Written', report.written, (files) => files.map((file) => `  ${file}`))
  return `${lines.join('\n')}\n`
}

function ranksText(ranks: CompositionReport['ranks']): string {
  if (ranks === undefined) return ''
  const part = (count: number | undefined, nodes: number | undefined, what: string) =>
    count === undefined ? [] : [`${count} ${what}${nodes === undefined ? '' : ` on ${nodes} node${nodes === 1 ? '' : 's'}`}`]
  return [...part(ranks.train, ranks.trainNodes, 'train'), ...part(ranks.inference, ranks.inferenceNodes, 'generate')].join(', ')
}

function pluginLines(plugins: CompositionReport['plugins'], paint: (style: Style, text: string) => string): string[] {
  const wide = Math.max(...plugins.map(({ seam }) => (seam ?? '-').length))
  const widest = Math.max(...plugins.map(({ name }) => name.length))
  return plugins.map(({ seam, name, origin, version, keys }) => {
    const from = version === null ? origin : `${origin}, ${version}`
    return `  ${(seam ?? '-').padEnd(wide)}  ${name.padEnd(widest)}  ${paint('dim', `(${from})`)}  ${keys.join(', ') || 'by default'}`
  })
}

/** Keys of one owner, table by table. */
function ownerLines(owners: readonly (readonly [string, readonly string[]])[], paint: (style: Style, text: string) => string): string[] {
  return owners.flatMap(([owner, keys]) => {
    const byTable = groupBy(keys, (key) => key.slice(0, Math.max(0, key.lastIndexOf('.'))))
    return [
      `  ${owner}: ${keys.length} key${keys.length === 1 ? '' : 's'}`,
      ...byTable.map(([table, group]) => {
        const names = group.map((key) => key.slice(key.lastIndexOf('.') + 1)).join(', ')
        return paint('dim', wrap(table === '' ? names : `${table}: ${names}`, 116, '    '))
      }),
    ]
  })
}

/** One line per place; a key that went from one place to several roles is one line. */
function keyLines(keys: readonly { readonly path: string; readonly given: unknown; readonly source: string }[]): string[] {
  const places = groupBy(keys, ({ source, given, path }) => JSON.stringify([source, given, path.split('.').at(-1)]))
  return places.map(([, group]) => {
    const [first, ...others] = group.map(({ path }) => path)
    const also = others.length === 0 ? '' : ` (also ${others.join(', ')})`
    return `    ${group[0]?.source}  ${first} = ${show(group[0]?.given)}${also}`
  })
}

function groupBy<T>(items: readonly T[], key: (item: T) => string): [string, T[]][] {
  const groups = new Map<string, T[]>()
  for (const item of items) groups.set(key(item), [...(groups.get(key(item)) ?? []), item])
  return [...groups]
}

function show(value: unknown): string {
  const text = value === null ? '"None"' : (JSON.stringify(value) ?? String(value))
  return text.length > 80 ? `${text.slice(0, 77)}...` : text
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

const capitalised = (sentence: string) => `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}`

function wrap(text: string, width: number, indent: string): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length + 1 > width) {
      lines.push((lines.length === 0 ? indent : `${indent}  `) + line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  lines.push((lines.length === 0 ? indent : `${indent}  `) + line)
  return lines.join('\n')
}

/** An error as a person reads it: code and place, what happened, what next; its single problems one below the other. Never a stack. */
export function renderError(error: TrilithonError, options: RenderOptions): string {
  const paint = painter(options)
  if (error.problems.length > 0) {
    const parts = error.problems.map((problem) => renderError(problem, options))
    return `${parts.join('\n')}\n${paint('bold', error.message)}\n`
  }
  const where = error.source === undefined ? (error.path ?? '') : formatSource(error.source)
  const head = `${paint('red', error.code)}${where === '' ? '' : `  ${paint('bold', where)}`}`
  const hint = error.hint === undefined ? '' : `\n  ${paint('cyan', error.hint)}`
  return `${head}\n  ${error.message}${hint}\n`
}

/** Stacks and causes, for `--verbose`. */
export function renderCauses(error: unknown): string {
  const parts: string[] = []
  for (let current: unknown = error; current !== undefined && current !== null; current = (current as { cause?: unknown }).cause) {
    parts.push(current instanceof Error ? (current.stack ?? current.message) : String(current))
  }
  return `${parts.join('\ncaused by: ')}\n`
}
