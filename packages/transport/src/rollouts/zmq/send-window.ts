import type { ReceiverState } from './receive-window.ts'

/** Milliseconds without progress after which what was sent counts as lost; twice as long each time. A broken connection is noticed at once. */
const stallMs = 5000
const longestStallMs = 60_000

/** What a sender knows of the receiver: which step it may send, and whether too many wait. */
export class SendWindow {
  readonly #hwm: number
  #session: string | undefined
  /** As the receiver said last; before that, the step that it is expected to begin with. */
  #next: number
  #until = 0
  /** Steps below it are on their way. */
  #sent: number
  #progressMs = 0
  #patienceMs = stallMs

  constructor(firstStep: number, hwm: number) {
    this.#next = firstStep
    this.#sent = firstStep
    this.#hwm = hwm
  }

  /** The first step that no receiver is known to have. */
  get next(): number {
    return this.#next
  }

  /** The step to send now, once it was shipped; undefined where none may be sent. */
  get due(): number | undefined {
    return this.#sent < this.#until ? this.#sent : undefined
  }

  /** Whether whoever shipped that step has to wait before the next one: `hwm` batches before it are not received. */
  isHeld(step: number): boolean {
    return step - this.#next >= this.#hwm
  }

  /** The receiver says what it lacks. Whether it is another one than before. */
  hear({ session, next, until }: ReceiverState, nowMs: number): boolean {
    const isNew = session !== this.#session
    // What is on its way to a receiver that has gone is lost.
    if (isNew) this.#sent = next
    if (isNew || next > this.#next) this.#progress(nowMs)
    this.#session = session
    this.#next = next
    this.#until = until
    this.#sent = Math.max(this.#sent, next)
    if (this.#sent > next && nowMs - this.#progressMs > this.#patienceMs) {
      this.#sent = next
      this.#progressMs = nowMs
      this.#patienceMs = Math.min(2 * this.#patienceMs, longestStallMs)
    }
    return isNew
  }

  /** The step that was due is on its way. */
  noteSent(step: number, nowMs: number): void {
    this.#sent = step + 1
    this.#progressMs = nowMs
  }

  /** The connection broke: what the receiver has not said to have is sent again. */
  lost(): void {
    this.#sent = this.#next
  }

  #progress(nowMs: number): void {
    this.#progressMs = nowMs
    this.#patienceMs = stallMs
  }
}
