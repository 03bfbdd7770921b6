import type { StoredDtype } from './safetensors-header.ts'

/** Little-endian bytes of a storage type to float32, exactly. `into` has one element per stored one. */
export function toFloat32(dtype: StoredDtype, bytes: Uint8Array, into: Float32Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  switch (dtype) {
    case 'F32':
      for (let i = 0; i < into.length; i++) into[i] = view.getFloat32(4 * i, true)
      return
    case 'BF16': {
      const bits = new Uint32Array(into.buffer, into.byteOffset, into.length)
      for (let i = 0; i < into.length; i++) bits[i] = view.getUint16(2 * i, true) << 16
      return
    }
    case 'F16':
      for (let i = 0; i < into.length; i++) into[i] = fromHalf(view.getUint16(2 * i, true))
      return
  }
}

function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}

/** float32 to the bytes of a storage type; bfloat16 rounds to the nearest, ties to even, and a NaN stays one. */
export function fromFloat32(dtype: 'F32' | 'BF16', values: Float32Array): Uint8Array {
  if (dtype === 'F32') {
    const bytes = new Uint8Array(values.length * 4)
    const view = new DataView(bytes.buffer)
    for (let i = 0; i < values.length; i++) view.setFloat32(4 * i, values[i] ?? 0, true)
    return bytes
  }
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length)
  const bytes = new Uint8Array(values.length * 2)
  const view = new DataView(bytes.buffer)
  for (let i = 0; i < bits.length; i++) {
    const word = bits[i] ?? 0
    const notNumber = (word & 0x7fffffff) > 0x7f800000
    view.setUint16(2 * i, notNumber ? (word >>> 16) | 0x40 : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16, true)
  }
  return bytes
}
