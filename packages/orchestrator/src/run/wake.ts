/** Wakes one loop: a call of `wake` while the loop is busy is not lost, and many calls are one. */
export class Wake {
  #isPending = false
  #resolve: (() => void) | undefined

  readonly wake = (): void => {
    this.#isPending = true
    this.#resolve?.()
  }

  /** Resolves when there was a call since the last `next`. */
  async next(): Promise<void> {
    if (!this.#isPending)
      await new Promise<void>((resolve) => {
        this.#resolve = resolve
      })
    this.#resolve = undefined
    this.#isPending = false
  }
}
