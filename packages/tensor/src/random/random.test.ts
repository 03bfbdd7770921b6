import { expect, test } from 'vitest'
import { CounterRandom, philox } from './counter-random.ts'
import { normal, truncatedNormal, uniform } from './initialiser.ts'
import { normalQuantile } from './normal-quantile.ts'

test('Philox gives the known answers of its authors', () => {
  const words = new Uint32Array(4)
  philox([0, 0, 0, 0], 0, 0, words)
  expect([...words]).toEqual([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8])
  philox([0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff], 0xffffffff, 0xffffffff, words)
  expect([...words]).toEqual([0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd])
  philox([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], 0xa4093822, 0x299f31d0, words)
  expect([...words]).toEqual([0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1])
})

test('the quantile is the inverse of the distribution', () => {
  const known = [
    [0.5, 0],
    [0.975, 1.959963984540054],
    [0.999, 3.090232306167813],
    [1e-10, -6.361340902404056],
    [0.15865525393145707, -1],
  ] as const
  for (const [probability, quantile] of known) expect(normalQuantile(probability)).toBeCloseTo(quantile, 13)
})

const momentsOf = (values: Float64Array) => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  return { mean, deviation: Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length) }
}

test('initialisers have the moments and the bounds that they say', () => {
  const values = new Float64Array(100_000)
  normal(0.02, 1).fill(values, 3, 'name', 0)
  expect(momentsOf(values).mean).toBeCloseTo(1, 3)
  expect(momentsOf(values).deviation).toBeCloseTo(0.02, 3)
  truncatedNormal(2, 1.5).fill(values, 3, 'name', 0)
  expect(values.every((value) => Math.abs(value) <= 3)).toBe(true)
  expect(momentsOf(values).deviation).toBeCloseTo(2 * 0.743, 1)
  uniform(-1, 3).fill(values, 3, 'name', 0)
  expect(values.every((value) => value > -1 && value < 3)).toBe(true)
  expect(momentsOf(values).mean).toBeCloseTo(1, 1)
  expect(momentsOf(values).deviation).toBeCloseTo(4 / Math.sqrt(12), 1)
})

test('a stream can be read at any index, in any order', () => {
  const forwards = new CounterRandom(9, 'stream')
  const words = Array.from({ length: 20 }, (_, index) => forwards.word(index))
  const backwards = new CounterRandom(9, 'stream')
  for (let index = 19; index >= 0; index--) expect(backwards.word(index)).toBe(words[index])
})
