import type { Logger } from '@trilithon/core'
import { duration, LiveBlock, round, type ViewOutput } from '@trilithon/monitor'
import type { SftEvent } from './sft-event.ts'

export interface SftViewOptions {
  readonly output: ViewOutput
  /** Lines as JSON of this logger instead of text. */
  readonly json: Logger | null
}

/** Weight of the newest step in the time per step that the end is estimated by. */
const newest = 0.2

/** Shows a run: one line that changes on a terminal, a line per event elsewhere. */
export class SftView {
  readonly #output: ViewOutput
  readonly #json: Logger | null
  #maxSteps: number | null = null
  #secondsPerStep = 0
  readonly #block: LiveBlock | null

  constructor({ output, json }: SftViewOptions) {
    this.#output = output
    this.#json = json
    this.#block = output.isTTY === true && json === null ? new LiveBlock({ output }) : null
  }

  show(event: SftEvent): void {
    if (event.kind === 'started') this.#maxSteps = event.maxSteps
    if (event.kind === 'step')
      this.#secondsPerStep = this.#secondsPerStep === 0 ? event.seconds : (1 - newest) * this.#secondsPerStep + newest * event.seconds
    if (this.#json !== null) this.#log(event, this.#json)
    else if (event.kind === 'step') this.#showStep(event)
    else {
      if (event.kind === 'ended') this.close()
      this.#line(this.#sentence(event))
    }
  }

  /** Leaves the line as it is; what follows has its own. */
  close(): void {
    this.#block?.close()
  }

  #showStep(event: Extract<SftEvent, { kind: 'step' }>): void {
    const left = this.#maxSteps === null ? undefined : (this.#maxSteps - event.step) * this.#secondsPerStep
    const throughput = event.tokens / event.seconds
    if (this.#block !== null) {
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
      this.#block.update([parts.join('  ')])
      return
    }
    const { 'entropy/all/mean': entropy, 'perf/mfu': mfu } = event.metrics
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
        ...(mfu === undefined ? [] : [`MFU ${mfu.toFixed(1)}%`]),
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
    if (this.#block === null) this.#output.write(`${text}\n`)
    else this.#block.print(text)
  }

  #log(event: SftEvent, log: Logger): void {
    const { kind, ...fields } = event
    if (kind === 'skipped') log.warn('step skipped', fields)
    else log.info(kind === 'step' ? 'step trained' : kind, fields)
  }
}
