import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fromBfloat16, toBfloat16 } from './serving-dtype.ts'

const bitsOf = (value: number) => {
  const into = new Uint16Array(1)
  toBfloat16(Float32Array.of(value), into)
  return into[0]
}
const fromBits = (bits: number) => new Float32Array(Uint32Array.of(bits).buffer)[0] as number

test.for([
  ['one', 1, 0x3f80],
  ['minus zero', -0, 0x8000],
  ['a tie to the even one below', 1 + 2 ** -8, 0x3f80],
  ['a tie to the even one above', 1 + 3 * 2 ** -8, 0x3f82],
  ['just above a tie', 1 + 2 ** -8 + 2 ** -23, 0x3f81],
  ['the largest float rounds to infinity', 3.4028234663852886e38, 0x7f80],
  ['infinity', Number.NEGATIVE_INFINITY, 0xff80],
  ['the least subnormal float', 2 ** -149, 0],
  ['a NaN whose mark would round away', fromBits(0x7f800001), 0x7fc0],
  ['a NaN with all bits', fromBits(0x7fffffff), 0x7fff],
] as const)('%s', ([, value, bits]) => {
  expect(bitsOf(value)).toBe(bits)
})

test('the nearest of the two neighbours is taken, and what bfloat16 holds comes back exactly', () => {
  const back = (bits: number) => {
    const into = new Float32Array(1)
    fromBfloat16(Uint16Array.of(bits), into)
    return into[0] as number
  }
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true, max: 2 ** 120, min: -(2 ** 120) }), (value) => {
      const bits = bitsOf(value) as number
      const distance = Math.abs(back(bits) - value)
      for (const neighbour of [bits - 1, bits + 1].filter((one) => one >>> 15 === bits >>> 15))
        expect(distance).toBeLessThanOrEqual(Math.abs(back(neighbour) - value))
      expect(bitsOf(back(bits))).toBe(bits)
    }),
  )
})
