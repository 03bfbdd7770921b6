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
  const heading = (text: string) => lines.push('', paint('bold', text))
  lines.push(paint('bold', `trilithon ${report.root}: the configuration is sound`))
  lines.push(`  files  ${report.files.join(', ') || 'none (defaults only)'}`)
  lines.push(`  roles  ${report.roles.map(({ name, built }) => (built ? name : `${name} (not built yet)`)).join(', ')}`)

  heading('Plugins')
  const wide = Math.max(...report.plugins.map(({ seam }) => seam.length), 0)
  const widest = Math.max(...report.plugins.map(({ name }) => name.length), 0)
  for (const { seam, name, origin, version, keys } of report.plugins) {
    const from = version === null ? origin : `${origin}, ${version}`
    lines.push(`  ${seam.padEnd(wide)}  ${name.padEnd(widest)}  ${paint('dim', `(${from})`)}  ${keys.join(', ') || 'by default'}`)
  }

  heading('Keys')
  for (const [owner, keys] of Object.entries(report.owners)) {
    lines.push(`  ${owner}: ${keys.length} key${keys.length === 1 ? '' : 's'}`)
    lines.push(paint('dim', wrap(keys.join(', '), 116, '    ')))
  }
  section(lines, heading, 'Not available here (a real start stops at these)', report.unavailable, (item) => [
    `  ${item.source}  ${item.path} = ${JSON.stringify(item.value)}`,
    `    ${item.code}: ${item.reason}. ${item.hint}`,
  ])
  section(lines, heading, 'Read by external backends only', report.ignored, (item) => [
    `  ${item.source}  ${item.path} = ${JSON.stringify(item.value)}`,
    `    ${item.reason}`,
  ])
  section(lines, heading, 'Notes', report.notices, (notice) => [`  ${notice}`])
  section(lines, heading, 'Written', report.written, (file) => [`  ${file}`])
  return `${lines.join('\n')}\n`
}

function section<T>(
  lines: string[],
  heading: (text: string) => void,
  title: string,
  items: readonly T[],
  render: (item: T) => string[],
): void {
  if (items.length === 0) return
  heading(title)
  for (const item of items) lines.push(...render(item))
}

function wrap(text: string, width: number, indent: string): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length + 1 > width) {
      lines.push(indent + line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  lines.push(indent + line)
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
