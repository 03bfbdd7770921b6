import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { TrilithonError } from '@trilithon/core'

type Values = Readonly<Record<string, unknown>>
type Keeps = (step: number, values: Values) => boolean

/** Lines of JSON, one per event of a run, each beginning with its step. What was written is in the file when a call returns. */
export class MetricsFile {
  readonly #path: string
  /** Steps with lines from before that may come again. */
  readonly #before = new Set<number>()

  constructor(path: string) {
    this.#path = path
  }

  /**
   * Before a run goes on: drops the lines that `keeps` refuses and what is not a whole line, so that steps that come again have one line in the end. Throws
   * `OUTPUT_UNUSABLE`.
   */
  cut(keeps: Keeps): void {
    this.#guard(() => this.#rewrite(keeps))
  }

  /**
   * Before a run goes on with `firstStep`: drops what comes again. What may come again or not stays until it does: evaluations of the weights that it goes on with, and
   * steps of the role `ahead`, which has done some of those to come. Throws `OUTPUT_UNUSABLE`.
   */
  goOn(firstStep: number, { ahead }: { readonly ahead?: string } = {}): void {
    this.cut((step, values) => {
      const isOpen = isEvaluation(values) ? step <= firstStep : step >= firstStep && ahead !== undefined && values.role === ahead
      const isKept = step < firstStep || (firstStep > 0 && isOpen)
      if (isKept && isOpen) this.#before.add(step)
      return isKept
    })
  }

  /** Throws `OUTPUT_UNUSABLE`. */
  append(step: number, values: Readonly<Record<string, unknown>>): void {
    const line = `${JSON.stringify({ step, ...values })}\n`
    this.#guard(() => {
      if (this.#before.has(step) && existsSync(this.#path)) this.#rewrite((at, other) => at !== step || !isSame(other, values), line)
      else appendFileSync(this.#path, line)
    })
  }

  /** Makes the folder of the file. Throws `OUTPUT_UNUSABLE`. */
  makeFolder(): void {
    this.#guard(() => mkdirSync(dirname(this.#path), { recursive: true }))
  }

  /** Whoever reads it meanwhile sees the file as it was or as it is. */
  #rewrite(keeps: Keeps, more = ''): void {
    if (!existsSync(this.#path)) return
    const kept = readFileSync(this.#path, 'utf8')
      .split('\n')
      .filter((line) => {
        const values = parseLine(line)
        return values !== undefined && keeps(values.step, values)
      })
    writeFileSync(`${this.#path}.writing`, `${kept.map((line) => `${line}\n`).join('')}${more}`)
    renameSync(`${this.#path}.writing`, this.#path)
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

const evaluations = (values: Values): string[] => Object.keys(values).filter((key) => key.startsWith('eval/'))

const isEvaluation = (values: Values): boolean => evaluations(values).length > 0

/** Whether two lines of a step are of the same role, and of the same environment where they are evaluations. */
function isSame(one: Values, other: Values): boolean {
  if (one.role !== other.role || isEvaluation(one) !== isEvaluation(other)) return false
  return !isEvaluation(one) || evaluations(one).some((key) => key in other)
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
