import { Packr, Unpackr } from 'msgpackr'

/** Plain msgpack maps without extensions, as other languages write and read them. */
const packr = new Packr({ useRecords: false, variableMapSize: true })
const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' })

export function pack(value: unknown): Buffer {
  return packr.pack(value)
}

/** Bytes in it are views of `bytes`. Throws where it is no msgpack. */
export function unpack(bytes: Uint8Array): unknown {
  return unpackr.unpack(bytes)
}
