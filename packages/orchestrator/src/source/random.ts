/** A well-mixed unsigned 32-bit number of two others: a function, so a position can be continued without its history. */
export function mix(seed: number, index: number): number {
  let value = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) + Math.imul(index, 0xc2b2ae35)) | 0
  value = Math.imul(value ^ (value >>> 16), 0x21f0aaad)
  value = Math.imul(value ^ (value >>> 15), 0x735a2d97)
  return (value ^ (value >>> 15)) >>> 0
}

/** In [0, 1). */
export const fraction = (seed: number, index: number): number => mix(seed, index) / 2 ** 32

/** The numbers below `length` in an order that is a function of the seed (Fisher and Yates). */
export function shuffled(length: number, seed: number): Uint32Array {
  const order = Uint32Array.from({ length }, (_, index) => index)
  for (let index = length - 1; index > 0; index--) {
    const other = Math.floor(fraction(seed, index) * (index + 1))
    const value = order[index] ?? 0
    order[index] = order[other] ?? 0
    order[other] = value
  }
  return order
}
