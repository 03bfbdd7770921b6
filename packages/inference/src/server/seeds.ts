const mask = (1n << 64n) - 1n

/** One step of splitmix64: neighbouring numbers become unrelated ones. */
function mix(value: bigint): bigint {
  let z = (value + 0x9e3779b97f4a7c15n) & mask
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & mask
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & mask
  return z ^ (z >> 31n)
}

/** Seeds for requests that bring none: of one server all different, of two engines unrelated, and after a start the same again. */
export function createSeeds(seed: number, engine: number): () => bigint {
  const base = mix(mix(BigInt.asUintN(64, BigInt(seed))) ^ BigInt(engine))
  let count = 0n
  return () => {
    count += 1n
    return BigInt.asIntN(64, mix(base ^ count))
  }
}
