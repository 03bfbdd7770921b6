/** NumPy's names of the element types that answers carry. */
const descriptors = { uint8: '|u1', uint16: '<u2', int32: '<i4' } as const

/**
 * An array as the bytes of a `.npy` file, version 1.0: magic, version, length of the header (u16, little endian), a Python dictionary that is padded
 * with spaces to 64 bytes and ends with a newline, then the elements in C order.
 */
export function numpyFile(data: Uint8Array, shape: readonly number[], dtype: keyof typeof descriptors): Buffer {
  const dimensions = shape.length === 1 ? `${shape[0]},` : shape.join(', ')
  const dictionary = `{'descr': '${descriptors[dtype]}', 'fortran_order': False, 'shape': (${dimensions}), }`
  const prefix = 10
  const headerBytes = Math.ceil((prefix + dictionary.length + 1) / 64) * 64
  const file = Buffer.alloc(headerBytes + data.byteLength, ' ')
  file.write('\x93NUMPY\x01\x00', 0, 'latin1')
  file.writeUInt16LE(headerBytes - prefix, 8)
  file.write(dictionary, prefix, 'latin1')
  file.write('\n', headerBytes - 1, 'latin1')
  file.set(data, headerBytes)
  return file
}
