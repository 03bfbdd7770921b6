/** Something that ends at a time. The heap writes `heapIndex`: its place there, or -1 while it is in no heap. */
export interface Expiring {
  readonly deadlineMs: number
  heapIndex: number
}

/**
 * Binary heap by deadline, from which any item can be taken out in O(log n): leases mostly end long before their deadline, and one that has
 * ended must not stay in memory until then.
 */
export class DeadlineHeap<T extends Expiring> {
  readonly #items: T[] = []

  get size(): number {
    return this.#items.length
  }

  push(item: T): void {
    this.#items.push(item)
    this.#rise(item, this.#items.length - 1)
  }

  /** Does nothing for an item that is in no heap. */
  remove(item: T): void {
    if (item.heapIndex < 0) return
    const last = this.#items.pop()
    if (last !== undefined && last !== item) {
      const hole = item.heapIndex
      this.#rise(last, hole)
      if (last.heapIndex === hole) this.#sink(last, hole)
    }
    item.heapIndex = -1
  }

  /** Takes the item with the earliest deadline out, if that is at or before `nowMs`. */
  takeExpired(nowMs: number): T | undefined {
    const first = this.#items[0]
    if (first === undefined || first.deadlineMs > nowMs) return undefined
    this.remove(first)
    return first
  }

  clear(): void {
    for (const item of this.#items) item.heapIndex = -1
    this.#items.length = 0
  }

  #rise(item: T, from: number): void {
    let index = from
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = this.#items[above]
      if (parent === undefined || parent.deadlineMs <= item.deadlineMs) break
      this.#put(parent, index)
      index = above
    }
    this.#put(item, index)
  }

  #sink(item: T, from: number): void {
    let index = from
    for (;;) {
      const left = this.#items[2 * index + 1]
      if (left === undefined) break
      const right = this.#items[2 * index + 2]
      const child = right !== undefined && right.deadlineMs < left.deadlineMs ? right : left
      if (child.deadlineMs >= item.deadlineMs) break
      const below = child.heapIndex
      this.#put(child, index)
      index = below
    }
    this.#put(item, index)
  }

  #put(item: T, index: number): void {
    this.#items[index] = item
    item.heapIndex = index
  }
}
