/** What sends frames: a socket of ZeroMQ. */
export interface FrameSender {
  send(frames: (string | Uint8Array)[]): Promise<void>
}

/**
 * Sends one message after the other: a socket allows one that waits at a time. A message that cannot be sent (its peer has gone) is told to `onLost` and
 * is otherwise forgotten, because whoever waits for the peer is told of its end elsewhere.
 */
export class SendQueue {
  readonly #socket: FrameSender
  readonly #onLost: (error: unknown) => void
  readonly #waiting: (string | Uint8Array)[][] = []
  #isSending = false

  constructor(socket: FrameSender, onLost: (error: unknown) => void) {
    this.#socket = socket
    this.#onLost = onLost
  }

  send(frames: (string | Uint8Array)[]): void {
    this.#waiting.push(frames)
    if (!this.#isSending) void this.#drain()
  }

  async #drain(): Promise<void> {
    this.#isSending = true
    for (let frames = this.#waiting.shift(); frames !== undefined; frames = this.#waiting.shift()) {
      try {
        await this.#socket.send(frames)
      } catch (error) {
        this.#onLost(error)
      }
    }
    this.#isSending = false
  }
}
