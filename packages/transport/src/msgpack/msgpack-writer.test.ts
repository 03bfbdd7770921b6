import { unpack } from 'msgpackr'
import { expect, test } from 'vitest'
import { MsgpackWriter } from './msgpack-writer.ts'

/** The head of what was written, in hexadecimal. */
function headOf(write: (writer: MsgpackWriter) => void, bytes = 16): string {
  const writer = new MsgpackWriter(1 << 18)
  write(writer)
  return Buffer.from(writer.finish().subarray(0, bytes)).toString('hex')
}

// By the table of formats of the MessagePack specification.
test.for([
  [0, '00'],
  [127, '7f'],
  [128, 'cc80'],
  [255, 'ccff'],
  [256, 'cd0100'],
  [65535, 'cdffff'],
  [65536, 'ce00010000'],
  [2 ** 32 - 1, 'ceffffffff'],
  [2 ** 32, 'cf0000000100000000'],
  [2 ** 53 - 1, 'cf001fffffffffffff'],
] as const)('the integer %s has the least width', ([value, hex]) => {
  expect(headOf((writer) => writer.integer(value))).toBe(hex)
})

test.for([
  [0, '90'],
  [15, '9f'],
  [16, 'dc0010'],
  [65535, 'dcffff'],
  [65536, 'dd00010000'],
] as const)('a list of %s elements has the least header', ([length, hex]) => {
  expect(headOf((writer) => writer.array(length))).toBe(hex)
})

test.for([
  [0, 'a0'],
  [31, 'bf'],
  [32, 'd920'],
  [255, 'd9ff'],
  [256, 'da0100'],
  [65536, 'db00010000'],
] as const)('a text of %s bytes has the least header', ([length, hex]) => {
  expect(headOf((writer) => writer.text('x'.repeat(length)), hex.length / 2)).toBe(hex)
})

test.for([
  [0, 'c400'],
  [255, 'c4ff'],
  [256, 'c50100'],
  [65536, 'c600010000'],
] as const)('binary of %s bytes has the least header', ([length, hex]) => {
  expect(headOf((writer) => writer.binary(new Uint8Array(length)), hex.length / 2)).toBe(hex)
})

test('floats are always of 64 bits, the whole ones too', () => {
  expect(headOf((writer) => writer.floats([1, -0]), 19)).toBe('92cb3ff0000000000000cb8000000000000000')
})

test('texts count in bytes', () => {
  const writer = new MsgpackWriter(64)
  writer.text('ü€😀')
  expect(unpack(writer.finish())).toBe('ü€😀')
})

test('a text that is repeated is that many texts', () => {
  for (const count of [0, 1, 2, 3, 7, 64, 65]) {
    const writer = new MsgpackWriter(1024)
    writer.array(count + 1)
    writer.repeatedText('ü€😀', count)
    writer.text('end')
    expect(unpack(writer.finish())).toEqual([...Array(count).fill('ü€😀'), 'end'])
  }
})

test('words are little-endian binary', () => {
  expect(headOf((writer) => writer.words(Uint32Array.of(1, 0x01020304)), 10)).toBe('c4080100000004030201')
})

test('more elements than a header can tell are refused', () => {
  expect(() => headOf((writer) => writer.array(2 ** 32))).toThrow(RangeError)
})
