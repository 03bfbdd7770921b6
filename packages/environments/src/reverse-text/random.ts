/** A stream of pseudo-random numbers: the same seed gives the same numbers on every machine. */
export interface Random {
  /** Uniform in 0 … 1, 1 excluded. */
  next(): number
  /** Uniform in 0 … below - 1. */
  integer(below: number): number
}

/** splitmix32 over a 32-bit seed (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", in its 32-bit form). */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x9e3779b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
  return { next, integer: (below) => Math.floor(next() * below) }
}

/** A 32-bit hash of a text (FNV-1a), for splits and seeds that follow from content. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  // FNV leaves low bits poor in short texts; one round of mixing spreads them.
  hash = Math.imul(hash ^ (hash >>> 16), 0x21f0aaad)
  hash = Math.imul(hash ^ (hash >>> 15), 0x735a2d97)
  return (hash ^ (hash >>> 15)) >>> 0
}
