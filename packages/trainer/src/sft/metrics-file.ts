import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { TrilithonError } from '@trilithon/core'
import type { SftEvent } from './sft-event.ts'

/** `metrics.jsonl` of a run: one line per step and per validation. */
export class MetricsFile {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  /** Throws `OUTPUT_UNUSABLE`. */
  take(event: SftEvent): void {
    switch (event.kind) {
      case 'started':
        this.#guard(() => this.#cut(event.step))
        break
      case 'step':
        this.#append({ step: event.step, ...event.metrics })
        break
      case 'skipped':
        this.#append({ step: event.step, skipped: event.reason, samples: event.samples })
        break
      case 'validated':
        this.#append({ step: event.step, 'val/loss': event.loss, 'val/tokens': event.tokens, 'time/validation': event.seconds })
        break
      case 'saved':
        this.#append({ step: event.step, 'time/save_ckpt': event.seconds })
    }
  }

  /** Steps that come again after a resume have one line in the end. */
  #cut(step: number): void {
    if (!existsSync(this.#path)) return
    const lines = readFileSync(this.#path, 'utf8').split('\n')
    const kept = lines.filter((line) => {
      const found = /^\{"step":(\d+)[,}]/.exec(line)
      return found !== null && line.endsWith('}') && Number(found[1]) <= step
    })
    writeFileSync(`${this.#path}.writing`, kept.map((line) => `${line}\n`).join(''))
    renameSync(`${this.#path}.writing`, this.#path)
  }

  #append(values: Readonly<Record<string, unknown>>): void {
    this.#guard(() => appendFileSync(this.#path, `${JSON.stringify(values)}\n`))
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
