import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RootName } from '../src/compose/root-definitions.ts'

export const badFolder = fileURLToPath(new URL('../__fixtures__/bad', import.meta.url))

/**
 * A configuration that is wrong in one way. Its head, in comments, says what is expected of it:
 *
 *     # A sentence: the rule.
 *     # root: rl
 *     # code: CONFIG_VALUE_CONFLICT
 *     # at: deployment.gpus_per_node      dotted path of the problem, left out where it has none
 *     # source: --max-steps               where the problem was written; the line marked with `# <-` where left out; `none`
 *     # argv: @ files/x.json --flag       instead of `@` this file
 *     # environment: NAME=value
 *     # hint: text                        that the hint contains
 */
export interface BadFile {
  readonly file: string
  readonly rule: string
  readonly root: RootName
  readonly code: string
  readonly at: string | undefined
  /** As `formatSource` writes it; undefined for a problem without a place in a file. */
  readonly source: string | undefined
  readonly argv: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly hint: string | undefined
}

export function badFiles(): BadFile[] {
  const files = readdirSync(badFolder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.toml'))
  return files.map((file) => readBadFile(file.replaceAll('\\', '/'))).sort((a, b) => (a.file < b.file ? -1 : 1))
}

function readBadFile(file: string): BadFile {
  // One file is not UTF-8 on purpose; its head is.
  const lines = readFileSync(join(badFolder, file), 'latin1').split('\n')
  const head = new Map(
    lines
      .slice(1)
      .map((line) => /^# (\w+): (.*)$/.exec(line))
      .flatMap((match) => (match === null ? [] : [[match[1] ?? '', match[2] ?? ''] as const])),
  )
  const marked = lines.findIndex((line) => line.endsWith('# <-'))
  const line = head.get('line') ?? (marked < 0 ? undefined : String(marked + 1))
  const source = head.get('source') ?? (line === undefined ? undefined : `${file}:${line}`)
  const [name = '', value = ''] = head.get('environment')?.split('=') ?? []
  return {
    file,
    rule: lines[0]?.replace(/^# /, '') ?? '',
    root: head.get('root') as RootName,
    code: head.get('code') ?? '',
    at: head.get('at'),
    source: source === 'none' ? undefined : source,
    argv: head.get('argv')?.split(' ') ?? ['@', file],
    environment: name === '' ? {} : { [name]: value },
    hint: head.get('hint'),
  }
}
