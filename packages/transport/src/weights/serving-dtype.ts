/** Element types in which weights are served. */
export const servingDtypes = { F32: 4, BF16: 2 } as const
export type ServingDtype = keyof typeof servingDtypes

/** Rounds to the nearest bfloat16, ties to even; NaN stays NaN. `into` has the same length. */
export function toBfloat16(values: Float32Array, into: Uint16Array): void {
  // Signed, since a processor has these as they are and JavaScript does not have unsigned ones.
  const bits = new Int32Array(values.buffer, values.byteOffset, values.length)
  for (let index = 0; index < bits.length; index++) {
    const value = bits[index] as number
    const holdsNaN = (value & 0x7fff_ffff) > 0x7f80_0000
    // A NaN whose mark is in the low half would round to infinity.
    into[index] = holdsNaN ? (value >>> 16) | 0x40 : (value + (0x7fff + ((value >>> 16) & 1))) >>> 16
  }
}

/** Exact. `into` has the same length. */
export function fromBfloat16(values: Uint16Array, into: Float32Array): void {
  const bits = new Int32Array(into.buffer, into.byteOffset, into.length)
  for (let index = 0; index < values.length; index++) bits[index] = (values[index] as number) << 16
}

/** The memory of an array as bytes, by reference. */
export function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}
