import { TrilithonError } from '@trilithon/core'
import { z } from 'zod'
import { elementsOf } from '../weight-spec.ts'

/** Storage types that can be read, with their bytes per element. */
export const storedBytes = { F32: 4, BF16: 2, F16: 2 } as const
export type StoredDtype = keyof typeof storedBytes

/** A tensor in a safetensors file; `offset` counts from the start of the file. */
export interface TensorEntry {
  readonly name: string
  /** As the file spells it; only those of `storedBytes` can be read. */
  readonly dtype: string
  readonly shape: readonly number[]
  readonly offset: number
  readonly bytes: number
}

const Entry = z.strictObject({
  dtype: z.string(),
  shape: z.array(z.int().nonnegative()),
  data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
})

/** The format's own limit; a greater number is not a length. */
const longestHeader = 100_000_000

/** Reads the length before the header. Throws `CHECKPOINT_INVALID`. */
export function headerLength(prefix: Uint8Array, fileSize: number, file: string): number {
  if (prefix.length < 8) throw damaged(file, 'it is shorter than its own header')
  const length = Number(new DataView(prefix.buffer, prefix.byteOffset, 8).getBigUint64(0, true))
  if (length > longestHeader || length + 8 > fileSize)
    throw damaged(file, `its header claims ${length} bytes, and the file has ${fileSize}`)
  return length
}

/**
 * Parses a header and checks every claim it makes: names once, sizes that follow from dtype and shape, data that lies in the file, back to back
 * without gaps or overlap. Throws `CHECKPOINT_INVALID`.
 */
export function parseHeader(header: Uint8Array, fileSize: number, file: string): TensorEntry[] {
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(header))
  } catch (cause) {
    throw damaged(file, 'its header is not JSON', cause)
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw damaged(file, 'its header is not a table')
  const start = 8 + header.length
  const entries: TensorEntry[] = []
  for (const [name, value] of Object.entries(json)) {
    if (name === '__metadata__') continue
    const parsed = Entry.safeParse(value)
    if (!parsed.success) throw damaged(file, `the entry of ${name} is malformed`)
    const { dtype, shape, data_offsets: offsets } = parsed.data
    const bytes = offsets[1] - offsets[0]
    const width = Object.hasOwn(storedBytes, dtype) ? storedBytes[dtype as StoredDtype] : undefined
    if (bytes < 0 || (width !== undefined && bytes !== elementsOf(shape) * width)) {
      throw damaged(file, `${name} is ${dtype} [${shape.join(', ')}], and has ${bytes} bytes`)
    }
    if (start + offsets[1] > fileSize)
      throw damaged(file, `${name} ends at byte ${start + offsets[1]}, and the file at ${fileSize}: it is truncated`)
    entries.push({ name, dtype, shape, offset: start + offsets[0], bytes })
  }
  let end = start
  for (const { name, offset, bytes } of [...entries].sort((a, b) => a.offset - b.offset || a.bytes - b.bytes)) {
    if (offset !== end) throw damaged(file, `${name} ${offset < end ? 'overlaps the tensor before it' : 'leaves a gap before it'}`)
    end = offset + bytes
  }
  if (end !== fileSize) throw damaged(file, `it goes on for ${fileSize - end} bytes after its last tensor`)
  return entries
}

/** The header for tensors that follow in this order, back to back; padded so that the data is aligned to 8 bytes. */
export function encodeHeader(
  tensors: readonly { readonly name: string; readonly dtype: StoredDtype; readonly shape: readonly number[] }[],
): Uint8Array {
  const table: Record<string, unknown> = { __metadata__: { format: 'pt' } }
  let end = 0
  for (const { name, dtype, shape } of tensors) {
    const begin = end
    end += elementsOf(shape) * storedBytes[dtype]
    table[name] = { dtype, shape, data_offsets: [begin, end] }
  }
  const json = new TextEncoder().encode(JSON.stringify(table))
  const padded = Math.ceil(json.length / 8) * 8
  const header = new Uint8Array(8 + padded).fill(0x20)
  new DataView(header.buffer).setBigUint64(0, BigInt(padded), true)
  header.set(json, 8)
  return header
}

function damaged(file: string, reason: string, cause?: unknown): TrilithonError {
  return new TrilithonError('CHECKPOINT_INVALID', `${file} is no sound safetensors file: ${reason}`, {
    path: file,
    hint: 'Copy the checkpoint again.',
    cause,
  })
}
