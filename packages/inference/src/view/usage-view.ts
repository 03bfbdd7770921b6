import type { Logger } from '@trilithon/core'
import type { ViewOutput } from '@trilithon/monitor'
import { stateOf, type Usage } from './usage.ts'

export interface UsageViewOptions {
  readonly output: ViewOutput
  /** Lines as JSON of this logger instead of text. */
  readonly json: Logger | null
}

/** Shows what an engine does: one line that changes on a terminal, a line now and then elsewhere. */
export class UsageView {
  readonly #output: ViewOutput
  readonly #json: Logger | null
  readonly #isLive: boolean
  #shown = ''
  #isQuiet = false

  constructor({ output, json }: UsageViewOptions) {
    this.#output = output
    this.#json = json
    this.#isLive = output.isTTY === true && json === null
  }

  /** Often: changes the line on a terminal, and is nothing elsewhere. */
  refresh(usage: Usage): void {
    if (!this.#isLive) return
    this.#shown = sentence(usage, '  ').slice(0, Math.max(20, (this.#output.columns || 120) - 1))
    this.#draw()
  }

  /** Now and then: a line where there is no terminal. Of a time in which nothing happens, the first alone. */
  line(usage: Usage): void {
    if (this.#isLive) return
    if (!usage.isActive && this.#isQuiet) return
    this.#isQuiet = !usage.isActive
    if (this.#json !== null) this.#json.info('engine', { state: stateOf(usage), ...usage })
    else this.#output.write(`${sentence(usage, ' | ')}\n`)
  }

  /** A line that stays. */
  print(text: string): void {
    if (this.#json !== null) return
    this.#clear()
    this.#output.write(`${text}\n`)
    this.#draw()
  }

  /** A logger whose lines, which go to the same terminal, leave the changing line whole. */
  around(log: Logger): Logger {
    if (!this.#isLive) return log
    const write =
      (level: 'debug' | 'info' | 'warn' | 'error'): Logger['info'] =>
      (message, fields) => {
        this.#clear()
        log[level](message, fields)
        this.#draw()
      }
    return {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      child: (fields) => this.around(log.child(fields)),
    }
  }

  /** Leaves the last state, and the cursor below it. */
  close(): void {
    if (this.#shown === '') return
    this.#shown = ''
    this.#output.write('\n')
  }

  #draw(): void {
    if (this.#shown !== '') this.#output.write(`\r\u001b[K${this.#shown}`)
  }

  #clear(): void {
    if (this.#shown !== '') this.#output.write('\r\u001b[K')
  }
}

function sentence(usage: Usage, between: string): string {
  const percent = (share: number) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}%`
  return [
    ...(usage.isPaused ? ['paused'] : []),
    `${usage.running} running`,
    `${usage.waiting} waiting`,
    `${Math.round(usage.throughput)} tokens/s`,
    `prompts ${Math.round(usage.promptThroughput)} tokens/s`,
    `cache ${percent(usage.cacheUse)}`,
    `hits ${usage.hitRate === null ? '-' : percent(usage.hitRate)}`,
    `weights v${usage.version}`,
  ].join(between)
}
