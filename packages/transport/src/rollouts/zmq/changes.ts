/** Tells those who wait that something has changed. A change between a look and the waiting for it is not lost: the look remembers `count`. */
export class Changes {
  count = 0
  #waiting: (() => void)[] = []

  readonly note = (): void => {
    this.count++
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }

  /** Resolves when something has changed since `seen`, or by the signal. */
  async since(seen: number, signal?: AbortSignal): Promise<void> {
    if (this.count !== seen || signal?.aborted) return
    await new Promise<void>((resolve) => {
      const end = () => {
        signal?.removeEventListener('abort', end)
        resolve()
      }
      signal?.addEventListener('abort', end, { once: true })
      this.#waiting.push(end)
    })
  }
}
