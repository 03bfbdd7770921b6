/**
 * Random numbers by counter: number `index` of a stream depends on (seed, name, index) alone. So parameters come out equal in whatever order, and
 * in whatever slices, they are initialised.
 *
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
 */
import { refuse } from '../refuse.ts'

const rounds = 10
const multiplierA = 0xd2511f53
const multiplierB = 0xcd9e8d57
const weylA = 0x9e3779b9
const weylB = 0xbb67ae85

/** Upper half of the 64-bit product of two unsigned 32-bit numbers. */
function high(a: number, b: number): number {
  const aLow = a & 0xffff
  const aHigh = a >>> 16
  const bLow = b & 0xffff
  const bHigh = b >>> 16
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16)
  return aHigh * bHigh + Math.floor(middle / 0x10000) + ((((middle & 0xffff) + aLow * bHigh) / 0x10000) >>> 0)
}

/** Writes four 32-bit words for a counter of 128 bits under a key of 64. */
export function philox(counter: readonly [number, number, number, number], keyLow: number, keyHigh: number, words: Uint32Array): void {
  let [a, b, c, d] = counter
  let keyA = keyLow
  let keyB = keyHigh
  for (let round = 0; round < rounds; round++) {
    const highA = high(multiplierA, a)
    const lowA = Math.imul(multiplierA, a) >>> 0
    const highC = high(multiplierB, c)
    const lowC = Math.imul(multiplierB, c) >>> 0
    a = (highC ^ b ^ keyA) >>> 0
    b = lowC
    c = (highA ^ d ^ keyB) >>> 0
    d = lowA
    keyA = (keyA + weylA) >>> 0
    keyB = (keyB + weylB) >>> 0
  }
  words[0] = a
  words[1] = b
  words[2] = c
  words[3] = d
}

/** FNV-1a over the UTF-8 bytes of a text. */
function hashText(text: string, basis: number): number {
  let hash = basis
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}

export class CounterRandom {
  private readonly keyLow: number
  private readonly keyHigh: number
  private readonly words = new Uint32Array(4)
  private block = -1

  /** `seed` is a whole number from 0 to 2^53 - 1. */
  constructor(seed: number, name: string) {
    if (!Number.isSafeInteger(seed) || seed < 0) refuse('CounterRandom', 'seed', 'a whole number from 0 to 2^53 - 1', String(seed))
    const seedLow = seed >>> 0
    const seedHigh = Math.floor(seed / 0x100000000)
    philox([hashText(name, 0x811c9dc5), hashText(name, 0x2f0b4c47), seedLow, seedHigh], 0x7472696c, 0x6974686f, this.words)
    this.keyLow = this.words[0] as number
    this.keyHigh = this.words[1] as number
  }

  /** Number `index` of the stream: uniform, 32 bits. */
  word(index: number): number {
    const block = Math.floor(index / 4)
    if (block !== this.block) {
      philox([block >>> 0, Math.floor(block / 0x100000000), 0, 0], this.keyLow, this.keyHigh, this.words)
      this.block = block
    }
    return this.words[index % 4] as number
  }

  /** Uniform in the open interval from 0 to 1. */
  uniform(index: number): number {
    return (this.word(index) + 0.5) / 0x100000000
  }
}
