import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import type { CommandLineHost } from './host.ts'

/** Writes rows of training data as JSONL, folders included, and says so. Throws `OUTPUT_UNUSABLE`. */
export function writeRows(rows: readonly object[], out: string, host: CommandLineHost): void {
  const file = resolve(host.workingDirectory, out)
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''))
  } catch (cause) {
    throw new TrilithonError('OUTPUT_UNUSABLE', `${out} cannot be written: ${(cause as Error).message}`, {
      path: '--out',
      hint: 'Name another file.',
      cause,
    })
  }
  host.stdout.write(`wrote ${rows.length} rows to ${out}\n`)
}
