/**
 * Writes MessagePack as msgspec does for prime-rl's structs: integers in the least width, floats always as float64, which general libraries do not
 * promise. The room that is needed is given at the start, an upper bound; what is not used costs nothing.
 */
export class MsgpackWriter {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #at = 0

  constructor(room: number) {
    this.#bytes = new Uint8Array(room)
    this.#view = new DataView(this.#bytes.buffer)
  }

  /** What was written, by reference. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#at)
  }

  nil(): void {
    this.#bytes[this.#at++] = 0xc0
  }

  array(length: number): void {
    this.#header(length, 0x90, 15, undefined, 0xdc, 0xdd)
  }

  /** An integer from 0 to 2^53 - 1. */
  integer(value: number): void {
    if (value < 0x80) this.#bytes[this.#at++] = value
    else if (value < 0x100) this.#tagged8(0xcc, value)
    else if (value < 0x10000) this.#tagged16(0xcd, value)
    else if (value < 0x1_0000_0000) this.#tagged32(0xce, value)
    else {
      this.#bytes[this.#at] = 0xcf
      this.#view.setBigUint64(this.#at + 1, BigInt(value))
      this.#at += 9
    }
  }

  float(value: number): void {
    this.#bytes[this.#at] = 0xcb
    this.#view.setFloat64(this.#at + 1, value)
    this.#at += 9
  }

  text(value: string): void {
    const encoded = utf8.encode(value)
    this.#header(encoded.length, 0xa0, 31, 0xd9, 0xda, 0xdb)
    this.#raw(encoded)
  }

  /** The same text `count` times, encoded once. */
  repeatedText(value: string, count: number): void {
    if (count === 0) return
    const first = this.#at
    this.text(value)
    const length = this.#at - first
    // Doubles what is there until all is.
    for (let done = 1; done < count; ) {
      const more = Math.min(done, count - done)
      this.#bytes.copyWithin(this.#at, first, first + more * length)
      this.#at += more * length
      done += more
    }
  }

  binary(value: Uint8Array): void {
    this.#header(value.length, undefined, -1, 0xc4, 0xc5, 0xc6)
    this.#raw(value)
  }

  integers(values: ArrayLike<number>): void {
    this.array(values.length)
    for (let index = 0; index < values.length; index++) this.integer(values[index] ?? 0)
  }

  floats(values: ArrayLike<number>): void {
    this.array(values.length)
    for (let index = 0; index < values.length; index++) this.float(values[index] ?? 0)
  }

  /** Booleans: true where a value is not 0. */
  booleans(values: ArrayLike<number>): void {
    this.array(values.length)
    for (let index = 0; index < values.length; index++) this.#bytes[this.#at++] = values[index] === 0 ? 0xc2 : 0xc3
  }

  /** Unsigned integers of 32 bits as binary, little-endian. */
  words(values: Uint32Array): void {
    this.#header(values.length * 4, undefined, -1, 0xc4, 0xc5, 0xc6)
    for (let index = 0; index < values.length; index++) this.#view.setUint32(this.#at + index * 4, values[index] ?? 0, true)
    this.#at += values.length * 4
  }

  #raw(bytes: Uint8Array): void {
    this.#bytes.set(bytes, this.#at)
    this.#at += bytes.length
  }

  /** Kind and length: `fix` + length up to `fixMax`, else a tag and the length in 8 (where that tag exists), 16 or 32 bits. */
  #header(length: number, fix: number | undefined, fixMax: number, tag8: number | undefined, tag16: number, tag32: number): void {
    if (fix !== undefined && length <= fixMax) this.#bytes[this.#at++] = fix | length
    else if (tag8 !== undefined && length < 0x100) this.#tagged8(tag8, length)
    else if (length < 0x10000) this.#tagged16(tag16, length)
    else if (length < 0x1_0000_0000) this.#tagged32(tag32, length)
    else throw new RangeError(`MessagePack holds no ${length} elements in one value`)
  }

  #tagged8(tag: number, value: number): void {
    this.#bytes[this.#at] = tag
    this.#bytes[this.#at + 1] = value
    this.#at += 2
  }

  #tagged16(tag: number, value: number): void {
    this.#bytes[this.#at] = tag
    this.#view.setUint16(this.#at + 1, value)
    this.#at += 3
  }

  #tagged32(tag: number, value: number): void {
    this.#bytes[this.#at] = tag
    this.#view.setUint32(this.#at + 1, value)
    this.#at += 5
  }
}

const utf8 = new TextEncoder()

/** Bytes that a text takes at most. */
export const textRoom = (value: string): number => 5 + value.length * 3
