import type { RolloutReceiver } from '@trilithon/transport'
import type { RlBatch } from './rl-event.ts'
import { withoutRoutes } from './without-routes.ts'

export interface BatchFeederOptions {
  readonly receiver: RolloutReceiver
  readonly signal: AbortSignal
  deliver(batch: RlBatch): void
  fail(error: unknown): void
}

/** Hands batches to the training thread, each when it is asked for; the one behind it is read meanwhile. */
export class BatchFeeder {
  readonly #options: BatchFeederOptions
  readonly #end = new AbortController()
  readonly #signal: AbortSignal
  #next: Promise<RlBatch> | undefined

  constructor(options: BatchFeederOptions) {
    this.#options = options
    this.#signal = AbortSignal.any([options.signal, this.#end.signal])
  }

  /** The next batch is wanted. */
  want(): void {
    const next = this.#next ?? this.#read()
    this.#next = undefined
    next.then(
      (batch) => {
        this.#options.deliver(batch)
        this.#next = this.#read()
        // Whoever wants it gets the failure.
        this.#next.catch(() => undefined)
      },
      (error: unknown) => {
        if (!this.#signal.aborted) this.#options.fail(error)
      },
    )
  }

  /** What is being waited for comes no more. */
  close(): void {
    this.#end.abort()
  }

  async #read(): Promise<RlBatch> {
    const { step, samples } = await this.#options.receiver.next(this.#signal)
    return { step, samples: samples.map(withoutRoutes) }
  }
}
