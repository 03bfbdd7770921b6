import type { Logger } from '@trilithon/core'
import type { SftEvent } from './sft-event.ts'

/** Where a run is shown. */
export interface ViewOutput {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

export interface ViewOptions {
  readonly output: ViewOutput
  /** Lines as JSON of this logger instead of text. */
  readonly json: Logger | null
}

/** Weight of the newest step in the time per step that the end is estimated by. */
const newest = 0.2

/** Shows a run: one line that changes on a terminal, a line per event elsewhere. */
export class LiveView {
  readonly #output: ViewOutput
  readonly #json: Logger | null
  #maxSteps: number | null = null
  #secondsPerStep = 0
  #isLineOpen = false

  constructor({ output, json }: ViewOptions) {
    this.#output = output
    this.#json = json
  }

  show(event: SftEvent): void {
    if (event.kind === 'started') this.#maxSteps = event.maxSteps
    if (event.kind === 'step')
      this.#secondsPerStep = this.#secondsPerStep === 0 ? event.seconds : (1 - newest) * this.#secondsPerStep + newest * event.seconds
    if (this.#json !== null) this.#log(event, this.#json)
    else if (event.kind === 'step') this.#showStep(event)
    else this.#line(this.#sentence(event))
  }

  /** Closes the open line, so that what follows has its own. */
  close(): void {
    if (!this.#isLineOpen) return
    this.#isLineOpen = false
    this.#output.write('\n')
  }

  #showStep(event: Extract<SftEvent, { kind: 'step' }>): void {
    const left = this.#maxSteps === null ? undefined : (this.#maxSteps - event.step) * this.#secondsPerStep
    const throughput = event.tokens / event.seconds
    if (this.#output.isTTY === true) {
      const of = this.#maxSteps === null ? '' : `/${this.#maxSteps}`
      const parts = [
        `step ${event.step}${of}`,
        `loss ${event.loss.toFixed(4)}`,
        `${round(throughput)} tokens/s`,
        ...(left === undefined ? [] : [`ETA ${duration(left)}`]),
        `grad ${event.gradientNorm.toPrecision(3)}`,
        `lr ${event.learningRate.toExponential(2)}`,
        `${round(event.peakBytes / 2 ** 20)} MiB`,
      ]
      this.#isLineOpen = true
      this.#output.write(`\r\u001b[K${parts.join('  ').slice(0, Math.max(20, (this.#output.columns || 120) - 1))}`)
      return
    }
    const entropy = event.metrics['entropy/all/mean']
    this.#line(
      [
        `Step ${event.step}`,
        `${event.seconds.toFixed(2)}s`,
        `Loss ${event.loss.toFixed(4)}`,
        ...(entropy === undefined ? [] : [`Entropy ${entropy.toFixed(4)}`]),
        `Grad. Norm ${event.gradientNorm.toFixed(4)}`,
        `LR ${event.learningRate.toExponential(2)}`,
        `Throughput ${round(throughput)} tokens/s`,
        ...(left === undefined ? [] : [`ETA ${duration(left)}`]),
        `Peak Mem. ${(event.peakBytes / 2 ** 30).toFixed(2)} GiB`,
      ].join(' | '),
    )
  }

  #sentence(event: Exclude<SftEvent, { kind: 'step' }>): string {
    switch (event.kind) {
      case 'started':
        return `${event.step === 0 ? 'Training' : `Going on behind step ${event.step}`}: ${event.parameters} parameters, ${event.trainable} of them trained, ${event.rows} rows`
      case 'skipped':
        return `Step ${event.step} skipped: ${event.reason} (${event.samples.slice(0, 3).join(', ')}${event.samples.length > 3 ? ', …' : ''}); saved to ${event.path}`
      case 'validated':
        return `Validation (Step ${event.step}) | ${event.seconds.toFixed(2)}s | Loss ${event.loss.toFixed(4)} | ${event.tokens} tokens`
      case 'saved':
        return `Saved step ${event.step} in ${event.seconds.toFixed(2)}s: ${event.path}`
      case 'ended':
        return event.isInterrupted ? `Interrupted behind step ${event.step}` : `Done: ${event.step} steps`
    }
  }

  #line(text: string): void {
    if (this.#isLineOpen) this.#output.write('\n')
    this.#isLineOpen = false
    this.#output.write(`${text}\n`)
  }

  #log(event: SftEvent, log: Logger): void {
    const { kind, ...fields } = event
    if (kind === 'skipped') log.warn('step skipped', fields)
    else log.info(kind === 'step' ? 'step trained' : kind, fields)
  }
}

function round(value: number): string {
  return String(Math.round(value))
}

/** `1:02:03`, `2:03`. */
export function duration(seconds: number): string {
  const total = Math.max(0, Math.round(seconds))
  const two = (value: number) => String(value).padStart(2, '0')
  const hours = Math.floor(total / 3600)
  const minutes = Math.floor(total / 60) % 60
  return hours > 0 ? `${hours}:${two(minutes)}:${two(total % 60)}` : `${minutes}:${two(total % 60)}`
}
