import { cells, fitLine } from './text.ts'
import type { ViewOutput } from './view-output.ts'

export interface LiveBlockOptions {
  readonly output: ViewOutput
  /** Milliseconds between two drawings. */
  readonly intervalMs?: number
  /** Milliseconds of a clock that does not go back. */
  readonly now?: () => number
}

/**
 * Some lines at the end of a terminal that change in place, with lines that stay above them. Draws at most ten times per second, each drawing in one write;
 * no line is longer than the terminal is wide and the block never higher than it. The cursor is never hidden and no mode of the terminal is changed, so
 * there is nothing to put back, however the process ends; `close` leaves the last state of the block and the cursor below it.
 */
export class LiveBlock {
  readonly #output: ViewOutput
  readonly #intervalMs: number
  readonly #now: () => number
  /** As drawn. */
  #drawn: readonly string[] = []
  #wanted: readonly string[] = []
  #lastMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({ output, intervalMs = 100, now = () => performance.now() }: LiveBlockOptions) {
    this.#output = output
    this.#intervalMs = intervalMs
    this.#now = now
  }

  /** The block is these lines from now on. */
  update(lines: readonly string[]): void {
    if (this.#isClosed) return
    this.#wanted = lines
    if (this.#timer !== undefined) return
    const rest = this.#lastMs + this.#intervalMs - this.#now()
    if (rest <= 0) {
      this.#draw('')
      return
    }
    this.#timer = setTimeout(() => this.#draw(''), rest)
    this.#timer.unref()
  }

  /** A line that stays, above the block, at once. */
  print(line: string): void {
    if (this.#isClosed) this.#output.write(`${line}\n`)
    else this.#draw(`${line}\n`)
  }

  /** Draws what was wanted last and lets go of it. */
  close(): void {
    if (this.#isClosed) return
    this.#draw('')
    this.#isClosed = true
  }

  #draw(above: string): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#lastMs = this.#now()
    const columns = Math.max(2, this.#output.columns || 80)
    const lines = this.#wanted.slice(0, Math.max(1, (this.#output.rows || 24) - 1)).map((line) => fitLine(line, columns - 1))
    // A terminal that has become narrower since has wrapped what was drawn.
    const height = this.#drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(cells(line) / columns)), 0)
    const up = height > 0 ? `\u001b[${height}A\r` : ''
    this.#output.write(`${up}${height > 0 ? '\u001b[J' : ''}${above}${lines.map((line) => `${line}\n`).join('')}`)
    this.#drawn = lines
  }
}
