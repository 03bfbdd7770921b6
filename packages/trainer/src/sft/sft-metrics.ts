import { MetricsFile } from '@trilithon/monitor'
import type { SftEvent } from './sft-event.ts'

/** `metrics.jsonl` of a run: a line per step, validation and save. */
export class SftMetrics {
  readonly #file: MetricsFile

  constructor(path: string) {
    this.#file = new MetricsFile(path)
  }

  /** Throws `OUTPUT_UNUSABLE`. */
  take(event: SftEvent): void {
    switch (event.kind) {
      case 'started':
        // Steps that come again after a resume have one line in the end.
        this.#file.cut((step) => step <= event.step)
        break
      case 'step':
        this.#file.append(event.step, event.metrics)
        break
      case 'skipped':
        this.#file.append(event.step, { skipped: event.reason, samples: event.samples })
        break
      case 'validated':
        this.#file.append(event.step, { 'val/loss': event.loss, 'val/tokens': event.tokens, 'time/validation': event.seconds })
        break
      case 'saved':
        this.#file.append(event.step, { 'time/save_ckpt': event.seconds })
    }
  }
}
