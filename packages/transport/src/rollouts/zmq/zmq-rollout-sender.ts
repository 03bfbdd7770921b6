import { basename, dirname, join } from 'node:path'
import { type Logger, rolloutPorts, type Sample } from '@trilithon/core'
import type { Push, Subscriber } from 'zeromq'
import { type AsyncFiles, asyncFiles } from '../../files/async-files.ts'
import { readWhole, withFile } from '../../files/with-file.ts'
import { lastShippedStep, rolloutFiles, rolloutStepFolder } from '../rollout-folder.ts'
import { createRolloutSender, type RolloutSender } from '../rollout-sender.ts'
import { Changes } from './changes.ts'
import { SendWindow } from './send-window.ts'
import { addressOf, decodeState, loggerOf, socketOptions, type ZmqOptions } from './zmq-wire.ts'

/** Milliseconds without a word of a trainer after which that is said. */
const silenceMs = 30_000

export interface ZmqSenderOptions extends ZmqOptions {
  readonly files?: AsyncFiles
}

/**
 * Ships batches over ZeroMQ. Each lies in a file below `rollouts` before it travels, and stays there: whenever a trainer says which steps it lacks, they are sent
 * from the files, so it does not matter which of the two was started, killed or cut off, and when.
 */
export async function createZmqRolloutSender(rollouts: string, options: ZmqSenderOptions): Promise<RolloutSender> {
  // The sockets are loaded by those who use them alone.
  const { Push, Subscriber } = await import('zeromq')
  const common = { ...socketOptions(options), reconnectInterval: 100 }
  // Nothing waits for a peer that is not there, where it could be lost unnoticed.
  const push = new Push({ ...common, immediate: true, sendHighWaterMark: options.hwm })
  const subscriber = new Subscriber(common)
  const [port, statePort] = rolloutPorts(options.port)
  push.connect(addressOf(options.host, port))
  subscriber.connect(addressOf(options.host, statePort))
  return new ZmqSender(rollouts, options, push, subscriber)
}

class ZmqSender implements RolloutSender {
  readonly #rollouts: string
  /** The name of the run's folder, by which prime-rl's trainer tells runs apart. */
  readonly #run: string
  readonly #files: AsyncFiles
  readonly #disk: RolloutSender
  readonly #window: SendWindow
  readonly #changes = new Changes()
  readonly #log: Logger
  readonly #push: Push
  readonly #subscriber: Subscriber
  readonly #silence: NodeJS.Timeout
  readonly #ended: Promise<unknown>
  #isClosed = false
  #failure: { readonly reason: unknown } | undefined
  #lastShipped: number

  constructor(rollouts: string, options: ZmqSenderOptions, push: Push, subscriber: Subscriber) {
    const { firstStep, hwm, files = asyncFiles } = options
    this.#rollouts = rollouts
    this.#run = basename(dirname(rollouts))
    this.#files = files
    this.#disk = createRolloutSender(rollouts, { files })
    this.#window = new SendWindow(firstStep, hwm)
    this.#log = loggerOf(options)
    this.#push = push
    this.#subscriber = subscriber
    this.#lastShipped = lastShippedStep(rollouts) ?? -1
    const address = addressOf(options.host, options.port)
    this.#silence = setTimeout(() => this.#log.warn('no trainer asks for batches', { address }), silenceMs).unref()
    push.events.on('disconnect', () => {
      this.#window.lost()
      this.#changes.note()
    })
    subscriber.subscribe(this.#run)
    this.#ended = Promise.all([this.#listen(address), this.#sendAll()])
  }

  async send(step: number, samples: readonly Sample[], progress: object, signal?: AbortSignal): Promise<void> {
    await this.#disk.send(step, samples, progress)
    this.#lastShipped = Math.max(this.#lastShipped, step)
    this.#changes.note()
    await this.#until(() => !this.#window.isHeld(step), signal)
  }

  async delivered(signal?: AbortSignal): Promise<void> {
    await this.#until(() => this.#window.next > this.#lastShipped, signal)
  }

  async dispose(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#silence)
    this.#push.close()
    this.#subscriber.close()
    this.#changes.note()
    await this.#ended
  }

  /** Waits for what a trainer says. Rejects with what keeps batches from being sent. */
  async #until(isTrue: () => boolean, signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      const { count } = this.#changes
      if (this.#failure !== undefined) throw this.#failure.reason
      if (isTrue() || this.#isClosed || signal?.aborted) return
      await this.#changes.since(count, signal)
    }
  }

  async #listen(address: string): Promise<void> {
    for await (const [run, body] of this.#subscriber) {
      const state = decodeState(body)
      // A subscription is to everything that begins with the name.
      if (state === undefined || run?.toString() !== this.#run) continue
      clearTimeout(this.#silence)
      if (this.#window.hear(state, performance.now())) this.#log.info('a trainer takes batches', { address, step: state.next })
      this.#changes.note()
    }
  }

  /** Sends what is asked for, one batch after the other, as soon as it is on the disk. */
  async #sendAll(): Promise<void> {
    try {
      while (!this.#isClosed) {
        const { count } = this.#changes
        const step = this.#window.due
        const frames = step === undefined ? undefined : await this.#framesOf(step)
        if (step === undefined || frames === undefined) await this.#changes.since(count)
        else if (this.#window.due === step) {
          this.#window.noteSent(step, performance.now())
          await this.#push.send(frames)
        }
      }
    } catch (reason) {
      // What was under way when the socket was closed is in the files.
      if (this.#isClosed) return
      this.#failure = { reason }
      this.#changes.note()
    }
  }

  /** `[run, batch, expert rows where there are any]`; undefined for a step that was not shipped yet. */
  async #framesOf(step: number): Promise<(string | Uint8Array)[] | undefined> {
    const folder = rolloutStepFolder(this.#rollouts, step)
    const read = (name: string) => withFile(join(folder, name), this.#files, readWhole)
    if (!(await this.#files.exists(join(folder, rolloutFiles.batch)))) return undefined
    const hasExperts = await this.#files.exists(join(folder, rolloutFiles.experts))
    return [this.#run, await read(rolloutFiles.batch), ...(hasExperts ? [await read(rolloutFiles.experts)] : [])]
  }
}
