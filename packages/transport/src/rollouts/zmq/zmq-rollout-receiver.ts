import { randomUUID } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { type Logger, rolloutPorts } from '@trilithon/core'
import type { Publisher, Pull } from 'zeromq'
import { rolloutsInvalid } from '../../msgpack/field-reader.ts'
import type { RolloutReceiver } from '../rollout-receiver.ts'
import { decodeTrainingBatch, type TrainingBatch } from '../training-batch.ts'
import { Changes } from './changes.ts'
import { ReceiveWindow } from './receive-window.ts'
import { addressOf, encodeState, loggerOf, socketOptions, unusableAddress, type ZmqOptions } from './zmq-wire.ts'

/** How often a receiver says what it lacks, beside every time that it changes: an orchestrator may come at any time. */
const stateMs = 200
/** How long what it said last may still travel when it ends. */
const lingerMs = 500

export interface ZmqReceiverOptions extends ZmqOptions {
  /** The name of the orchestrator's folder; batches of others are not taken. */
  readonly run: string
}

/**
 * Receives batches over ZeroMQ, beginning with `firstStep`, and says to orchestrators which ones it lacks. Throws `PORT_IN_USE` and `CONFIG_VALUE_INVALID` for
 * the address; then nothing is left.
 */
export async function createZmqRolloutReceiver(options: ZmqReceiverOptions): Promise<RolloutReceiver> {
  // The sockets are loaded by those who use them alone.
  const { Publisher, Pull } = await import('zeromq')
  const common = socketOptions(options)
  const pull = new Pull({ ...common, receiveHighWaterMark: options.hwm })
  const publisher = new Publisher({ ...common, linger: lingerMs })
  try {
    for (const [index, socket] of [pull, publisher].entries()) {
      const port = rolloutPorts(options.port)[index] ?? options.port
      const address = addressOf(options.host, port)
      await socket.bind(address).catch((cause: unknown) => {
        throw unusableAddress(address, port, cause)
      })
    }
  } catch (error) {
    pull.close()
    publisher.close()
    throw error
  }
  return new ZmqReceiver(options, pull, publisher)
}

class ZmqReceiver implements RolloutReceiver {
  readonly #run: string
  readonly #session = randomUUID()
  readonly #window: ReceiveWindow<TrainingBatch>
  readonly #changes = new Changes()
  readonly #log: Logger
  readonly #pull: Pull
  readonly #publisher: Publisher
  readonly #timer: NodeJS.Timeout
  readonly #received: Promise<void>
  #telling: Promise<void> | undefined
  #isUntold = false
  #isWaiting = false
  #hasWarned = false
  /** Is told to whoever waits, once. */
  #failure: { readonly reason: unknown } | undefined

  constructor(options: ZmqReceiverOptions, pull: Pull, publisher: Publisher) {
    this.#run = options.run
    this.#window = new ReceiveWindow(options.firstStep, options.hwm)
    this.#log = loggerOf(options)
    this.#pull = pull
    this.#publisher = publisher
    this.#timer = setInterval(() => this.#tell(), stateMs)
    this.#received = this.#receive()
    this.#tell()
  }

  async next(signal?: AbortSignal): Promise<TrainingBatch> {
    if (this.#isWaiting) throw rolloutsInvalid(this.#run, '', `step ${this.#window.next} is being waited for already`)
    this.#isWaiting = true
    try {
      for (;;) {
        const { count } = this.#changes
        signal?.throwIfAborted()
        const batch = this.#window.take()
        if (batch !== undefined) {
          this.#tell()
          return batch
        }
        const failure = this.#failure
        this.#failure = undefined
        if (failure !== undefined) throw failure.reason
        await this.#changes.since(count, signal)
      }
    } finally {
      this.#isWaiting = false
    }
  }

  async dispose(): Promise<void> {
    clearInterval(this.#timer)
    this.#pull.close()
    await this.#received
    await this.#telling
    this.#publisher.close()
  }

  async #receive(): Promise<void> {
    for await (const [run, bytes, experts, ...more] of this.#pull) {
      try {
        if (run === undefined || bytes === undefined || more.length > 0)
          throw rolloutsInvalid('a message', '', 'has not two or three frames: run, batch, expert rows')
        if (run.toString() === this.#run) this.#take(bytes, experts)
        else if (!this.#hasWarned) {
          this.#hasWarned = true
          this.#log.warn('batches of another run came and were not taken', { run: run.toString(), taken: this.#run })
        }
      } catch (reason) {
        this.#failure ??= { reason }
      }
      this.#changes.note()
    }
  }

  #take(bytes: Uint8Array, experts: Buffer | undefined): void {
    // Rows stay where they came; what leaves this package is no Buffer.
    const rows = experts === undefined ? undefined : new Uint8Array(experts.buffer, experts.byteOffset, experts.byteLength)
    const batch = decodeTrainingBatch(bytes, rows, 'a batch that came over ZeroMQ')
    const { step } = batch
    const received = this.#window.put(step, crc32(bytes), batch)
    if (received !== 'kept') this.#log.debug('a batch came that was not asked for', { step, received })
    this.#tell()
  }

  /** Says what it lacks; a change while that is under way is said behind it. */
  #tell(): void {
    this.#isUntold = true
    this.#telling ??= this.#tellAll()
  }

  async #tellAll(): Promise<void> {
    try {
      while (this.#isUntold) {
        this.#isUntold = false
        const { next, until } = this.#window
        await this.#publisher.send([this.#run, encodeState({ session: this.#session, next, until })])
      }
    } catch (error) {
      this.#log.debug('what is lacking could not be said', { error })
    } finally {
      this.#telling = undefined
    }
  }
}
