import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { TrilithonError } from '@trilithon/core'

/** Lines of JSON, one per event of a run, each beginning with its step. What was written is in the file when a call returns. */
export class MetricsFile {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  /**
   * Before a run goes on: drops the lines that `keeps` refuses and what is not a whole line, so that steps that come again have one line in the end. Throws
   * `OUTPUT_UNUSABLE`.
   */
  cut(keeps: (step: number, values: Readonly<Record<string, unknown>>) => boolean): void {
    this.#guard(() => {
      if (!existsSync(this.#path)) return
      const kept = readFileSync(this.#path, 'utf8')
        .split('\n')
        .filter((line) => {
          const values = parseLine(line)
          return values !== undefined && keeps(values.step, values)
        })
      writeFileSync(`${this.#path}.writing`, kept.map((line) => `${line}\n`).join(''))
      renameSync(`${this.#path}.writing`, this.#path)
    })
  }

  /** Throws `OUTPUT_UNUSABLE`. */
  append(step: number, values: Readonly<Record<string, unknown>>): void {
    this.#guard(() => appendFileSync(this.#path, `${JSON.stringify({ step, ...values })}\n`))
  }

  /** Makes the folder of the file. Throws `OUTPUT_UNUSABLE`. */
  makeFolder(): void {
    this.#guard(() => mkdirSync(dirname(this.#path), { recursive: true }))
  }

  #guard(write: () => void): void {
    try {
      write()
    } catch (cause) {
      throw new TrilithonError('OUTPUT_UNUSABLE', `${this.#path} cannot be written: ${(cause as Error).message}`, {
        path: 'output_dir',
        hint: 'Make room, or choose another folder with --output-dir.',
        cause,
      })
    }
  }
}

/** The values of a line of metrics; undefined for a line that is cut off or another's. */
export function parseLine(line: string): ({ readonly step: number } & Readonly<Record<string, unknown>>) | undefined {
  try {
    const values: unknown = JSON.parse(line)
    if (typeof values === 'object' && values !== null && Number.isInteger((values as { step?: unknown }).step))
      return values as { readonly step: number }
  } catch (error) {
    // The last line of a process that was killed.
    if (!(error instanceof SyntaxError)) throw error
  }
  return undefined
}
