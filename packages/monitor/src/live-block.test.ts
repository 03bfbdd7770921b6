import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LiveBlock } from './live-block.ts'
import { cells } from './text.ts'

const sequence = new RegExp(`${String.fromCharCode(27)}\\[\\d*[A-Z]|[^]`, 'gu')

/** A terminal of the few sequences that a block may use: cursor up, carriage return, erase below, line feed. It wraps and scrolls. */
class Terminal {
  isTTY = true as const
  columns: number
  rows: number
  screen: string[] = ['']
  writes = 0
  #row = 0
  #column = 0
  constructor(columns: number, rows: number) {
    this.columns = columns
    this.rows = rows
  }
  write(text: string) {
    this.writes++
    for (const part of text.match(sequence) ?? []) this.#take(part)
  }
  /** As terminals do: what no longer fits is wrapped. */
  resize(columns: number) {
    this.columns = columns
    this.screen = this.screen.flatMap((line) => line.match(new RegExp(`.{1,${columns}}`, 'gu')) ?? [''])
    this.#row = this.screen.length - 1
  }
  #take(part: string) {
    if (part.startsWith('\u001b')) {
      const kind = part.at(-1)
      if (kind === 'A') this.#row = Math.max(this.screen.length - this.rows, 0, this.#row - Number(part.slice(2, -1)))
      else if (kind === 'J') this.screen.length = this.#row + 1
      else throw new Error(`the block used ${JSON.stringify(part)}`)
      if (kind === 'J') this.screen[this.#row] = (this.screen[this.#row] ?? '').slice(0, this.#column)
    } else if (part === '\r') this.#column = 0
    else if (part === '\n') this.#newLine()
    else {
      if (this.#column >= this.columns) this.#newLine()
      this.screen[this.#row] = `${(this.screen[this.#row] ?? '').slice(0, this.#column)}${part}`
      this.#column++
    }
  }
  #newLine() {
    this.#row++
    this.#column = 0
    this.screen[this.#row] ??= ''
  }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const make = (columns = 40, rows = 10) => {
  const terminal = new Terminal(columns, rows)
  return { terminal, block: new LiveBlock({ output: terminal, now: () => Date.now() }) }
}

describe('a block of lines', () => {
  it('changes in place below the lines that stay', () => {
    const { terminal, block } = make()
    block.update(['a 1', 'b 1'])
    block.print('first')
    vi.advanceTimersByTime(100)
    block.update(['a 2', 'b 2', 'c 2'])
    block.print('second')
    vi.advanceTimersByTime(100)
    block.update(['a 3'])
    block.close()
    expect(terminal.screen).toEqual(['first', 'second', 'a 3', ''])
    block.update(['late'])
    block.print('after')
    expect(terminal.screen).toEqual(['first', 'second', 'a 3', 'after', ''])
  })

  it('is drawn at most ten times per second, the last state in the end', () => {
    const { terminal, block } = make()
    for (let ms = 0; ms < 1000; ms++) {
      block.update([`at ${ms}`])
      vi.advanceTimersByTime(1)
    }
    expect(terminal.writes).toBeLessThanOrEqual(11)
    vi.advanceTimersByTime(100)
    expect(terminal.screen).toEqual(['at 999', ''])
  })

  // What a terminal has scrolled away is out of reach, so this one is high enough for what it wraps.
  it('holds at any width, also when that changes', () => {
    const line = fc.string({ unit: 'binary-ascii', maxLength: 60 })
    const frame = fc.record({ lines: fc.array(line, { maxLength: 6 }), columns: fc.integer({ min: 2, max: 50 }) })
    fc.assert(
      fc.property(fc.array(frame, { minLength: 1, maxLength: 6 }), (frames) => {
        const { terminal, block } = make(50, 400)
        for (const { lines, columns } of frames) {
          terminal.resize(columns)
          block.update(lines)
          vi.advanceTimersByTime(100)
          const shown = terminal.screen.slice(0, -1)
          expect(shown).toHaveLength(lines.length)
          for (const text of shown) expect(cells(text)).toBeLessThan(columns)
        }
      }),
    )
  })

  it('is never higher than the terminal', () => {
    const { terminal, block } = make(40, 4)
    for (const count of [9, 2, 5]) {
      block.update(Array.from({ length: count }, (_, index) => `line ${index}`))
      vi.advanceTimersByTime(100)
      expect(terminal.screen).toHaveLength(Math.min(count, 3) + 1)
    }
  })

  it('leaves what stays above it alone when its own lines are wrapped', () => {
    const { terminal, block } = make(40)
    block.print('stays')
    vi.advanceTimersByTime(100)
    block.update(['x'.repeat(39)])
    terminal.resize(20)
    expect(terminal.screen).toEqual(['stays', 'x'.repeat(20), 'x'.repeat(19), ''])
    vi.advanceTimersByTime(100)
    block.update(['y'])
    expect(terminal.screen).toEqual(['stays', 'y', ''])
  })
})
