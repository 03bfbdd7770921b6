import type { Generation } from './generation.ts'

/** Every id of a generation begins with this, as in vLLM. */
export const requestIdPrefix = 'generate-tokens-'

/** Requests that are being answered, so that they can be ended by their ids. */
export class ActiveRequests {
  readonly #byId = new Map<string, Set<Generation>>()
  #size = 0

  /** Requests under way. */
  get size(): number {
    return this.#size
  }

  add(generation: Generation): void {
    const known = this.#byId.get(generation.requestId) ?? new Set()
    this.#byId.set(generation.requestId, known.add(generation))
    this.#size += 1
  }

  delete(generation: Generation): void {
    const known = this.#byId.get(generation.requestId)
    if (known?.delete(generation) !== true) return
    this.#size -= 1
    if (known.size === 0) this.#byId.delete(generation.requestId)
  }

  /** Ends requests by the id of their answer, or by the one that their client gave; unknown ids are none. */
  abort(ids: readonly string[]): void {
    for (const id of ids) {
      for (const known of [this.#byId.get(id), this.#byId.get(`${requestIdPrefix}${id}`)])
        for (const generation of known ?? []) generation.abort()
    }
  }

  abortAll(): void {
    for (const known of this.#byId.values()) for (const generation of known) generation.abort()
  }

  /** Nothing comes from the engine any more. */
  failAll(reason: string): void {
    for (const known of this.#byId.values()) for (const generation of known) generation.fail(reason)
  }

  /** Resolves when none is left, or to false after `timeoutMs`. */
  async idle(timeoutMs: number): Promise<boolean> {
    const end = performance.now() + timeoutMs
    while (this.#size > 0) {
      if (performance.now() >= end) return false
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return true
  }
}
