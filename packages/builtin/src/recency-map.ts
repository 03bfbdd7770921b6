interface Entry<Value> {
  readonly key: string
  value: Value
  older: Entry<Value> | undefined
  newer: Entry<Value> | undefined
}

/**
 * A map that knows which entry was used longest ago. Every operation is O(1).
 *
 * A plain Map keeps an order too, and is no replacement: to find its first entry V8 steps over all that were deleted before it (measured: 60 us
 * at 100 000 entries of which the first is replaced each time).
 */
export class RecencyMap<Value> {
  readonly #entries = new Map<string, Entry<Value>>()
  #oldest: Entry<Value> | undefined
  #newest: Entry<Value> | undefined

  get size(): number {
    return this.#entries.size
  }

  has(key: string): boolean {
    return this.#entries.has(key)
  }

  /** Looks without using. */
  peek(key: string): Value | undefined {
    return this.#entries.get(key)?.value
  }

  /** Sets the value and makes the entry the most recently used. */
  use(key: string, value: Value): void {
    const known = this.#entries.get(key)
    if (known !== undefined) this.#unlink(known)
    const entry = known ?? { key, value, older: undefined, newer: undefined }
    entry.value = value
    if (known === undefined) this.#entries.set(key, entry)
    entry.older = this.#newest
    if (this.#newest === undefined) this.#oldest = entry
    else this.#newest.newer = entry
    this.#newest = entry
  }

  delete(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#unlink(entry)
  }

  clear(): void {
    this.#entries.clear()
    this.#oldest = undefined
    this.#newest = undefined
  }

  /** From the entry that was used longest ago to the last used one; entries may be deleted on the way. */
  *[Symbol.iterator](): Generator<readonly [key: string, value: Value]> {
    for (let entry = this.#oldest; entry !== undefined; ) {
      const { key, value, newer } = entry
      yield [key, value]
      entry = newer
    }
  }

  #unlink(entry: Entry<Value>): void {
    const { older, newer } = entry
    if (older === undefined) this.#oldest = newer
    else older.newer = newer
    if (newer === undefined) this.#newest = older
    else newer.older = older
    entry.older = undefined
    entry.newer = undefined
  }
}
