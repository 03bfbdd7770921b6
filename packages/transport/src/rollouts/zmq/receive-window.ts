import { TrilithonError } from '@trilithon/core'

/** What a receiver says of itself, again and again: the steps `next` to `until` (not included) may be sent to it. */
export interface ReceiverState {
  /** Another one for every receiver: one that was started anew has nothing of what the one before it had. */
  readonly session: string
  /** The first step that it does not have; all below are with the trainer or wait for it. */
  readonly next: number
  readonly until: number
}

/** `kept`; `again`: was received before; `outside`: is not asked for. */
export type Received = 'kept' | 'again' | 'outside'

/**
 * What a receiver has of the batches from `firstStep` on: each is handed out once, in order, whatever comes how often. It holds `hwm` batches at most.
 */
export class ReceiveWindow<Batch> {
  readonly #hwm: number
  readonly #waiting = new Map<number, Batch>()
  /** Of batches that were received lately, by step. */
  readonly #checksums = new Map<number, number>()
  /** The step that is handed out next. */
  #first: number

  constructor(firstStep: number, hwm: number) {
    this.#first = firstStep
    this.#hwm = hwm
  }

  get next(): number {
    let next = this.#first
    while (this.#waiting.has(next)) next++
    return next
  }

  get until(): number {
    return this.#first + this.#hwm
  }

  /** Takes a batch that came. Throws `ROLLOUTS_INVALID` for another batch of a step that was received: two orchestrators send. */
  put(step: number, checksum: number, batch: Batch): Received {
    const known = this.#checksums.get(step)
    if (known !== undefined && known !== checksum)
      throw new TrilithonError(
        'ROLLOUTS_INVALID',
        `batch ${step} came twice with different samples: two orchestrators send to this trainer`,
        {
          path: 'rollout_transport.port',
          hint: 'Give each run a port of its own.',
        },
      )
    if (step < this.#first || known !== undefined) return 'again'
    if (step >= this.until) return 'outside'
    this.#waiting.set(step, batch)
    this.#checksums.set(step, checksum)
    return 'kept'
  }

  /** The batch of the next step; undefined where it has not come. */
  take(): Batch | undefined {
    const batch = this.#waiting.get(this.#first)
    if (batch === undefined) return undefined
    this.#waiting.delete(this.#first)
    this.#checksums.delete(this.#first - this.#hwm)
    this.#first++
    return batch
  }
}
