import { randomBytes } from 'node:crypto'
import type { Logger } from '@trilithon/core'
import { Dealer } from 'zeromq'
import { pingPayload } from './messages.ts'
import { pack, unpack } from './pack.ts'
import { SendQueue } from './send-queue.ts'

type Listener = (message: unknown) => void

/** The asking side: a DEALER that sends `[request id, payload]` and hands each answer to whoever asked. Connections come back by themselves. */
export class FrameClient {
  readonly #socket: Dealer
  readonly #queue: SendQueue
  readonly #listeners = new Map<string, Listener>()
  readonly #prefix = randomBytes(8).toString('hex')
  #count = 0
  readonly #ended: Promise<void>

  /** `lingerMs`: how long what was sent last may still travel when it is closed. */
  constructor(endpoint: string, log: Logger, lingerMs = 0) {
    this.#socket = new Dealer({
      linger: lingerMs,
      sendHighWaterMark: 0,
      receiveHighWaterMark: 0,
      tcpKeepalive: 1,
      tcpKeepaliveIdle: 10,
      tcpKeepaliveInterval: 2,
      tcpKeepaliveCount: 3,
    })
    this.#socket.connect(endpoint)
    this.#queue = new SendQueue(this.#socket, (error) => log.debug('a request could not be sent', { endpoint, error }))
    this.#ended = this.#receive(log)
  }

  /** Sends a request; `listener` gets every frame of the answer until `forget`. Returns the id: 32 hexadecimal characters. */
  request(message: unknown, listener: Listener): string {
    return this.#send(pack(message), listener)
  }

  forget(id: string): void {
    this.#listeners.delete(id)
  }

  /** Tells the other side that nobody waits for the answer, and forgets it. */
  cancel(id: string): void {
    this.forget(id)
    this.#queue.send([id, new Uint8Array(0)])
  }

  /** Calls back when the other side is alive; perhaps never. Returns how to stop waiting. */
  ping(onPong: Listener): () => void {
    const id = this.#send(Buffer.from(pingPayload), (message) => {
      this.forget(id)
      onPong(message)
    })
    return () => this.forget(id)
  }

  async close(): Promise<void> {
    this.#listeners.clear()
    this.#socket.close()
    await this.#ended
  }

  #send(payload: Uint8Array, listener: Listener): string {
    const id = this.#prefix + (this.#count++).toString(16).padStart(16, '0')
    this.#listeners.set(id, listener)
    this.#queue.send([id, payload])
    return id
  }

  async #receive(log: Logger): Promise<void> {
    for await (const [id, payload] of this.#socket) {
      const listener = id === undefined ? undefined : this.#listeners.get(id.toString('latin1'))
      if (listener === undefined || payload === undefined) continue
      try {
        listener(unpack(payload))
      } catch (error) {
        log.error('an answer cannot be read', { error })
      }
    }
  }
}
