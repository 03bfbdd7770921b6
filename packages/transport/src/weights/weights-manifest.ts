import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { TrilithonError } from '@trilithon/core'
import { type ServingDtype, servingDtypes } from './serving-dtype.ts'

/** Where one tensor of a version lies in its data file. */
export interface ServingTensor {
  readonly name: string
  readonly dtype: ServingDtype
  readonly shape: readonly number[]
  /** `row-major`: elements in the order of their indices, the last one fastest. */
  readonly layout: string
  /** From the start of the data file; a multiple of 64. */
  readonly offset: number
  readonly bytes: number
  /** `crc32:` and 8 hexadecimal digits, over exactly `bytes` bytes. */
  readonly checksum: string
}

export interface WeightsManifest {
  /** Optimiser steps behind these weights. */
  readonly version: number
  readonly profile: string
  readonly tensors: readonly ServingTensor[]
}

/** What a publisher serves: a tensor without its place. */
export interface TensorToServe {
  readonly name: string
  readonly dtype: ServingDtype
  readonly shape: readonly number[]
}

/** Files of a version. `LOCATION` holds the path of the data file where that lies elsewhere; `STABLE` the checksum of the manifest. */
export const weightFiles = {
  manifest: 'manifest.json',
  data: 'weights.bin',
  location: 'LOCATION',
  marker: 'STABLE',
  readers: 'readers',
} as const

/** Folder of a version below the `broadcasts` folder. */
export const versionFolder = (broadcasts: string, version: number): string => join(broadcasts, `step_${version}`)

/** Number of a version by the name of its folder, or undefined. */
export const versionOf = (name: string): number | undefined => (/^step_(0|[1-9]\d{0,14})$/.test(name) ? Number(name.slice(5)) : undefined)

/** Offsets are multiples of this: a cache line, and whatever an accelerator wants of a copy. */
export const alignment = 64

export const elementsOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1)

/** CRC-32 of bytes, continued from that of the bytes before them. Finds every change of up to 32 bits in a row. */
export const continueChecksum = (bytes: Uint8Array, before = 0): number => crc32(bytes, before)
export const formatChecksum = (value: number): string => `crc32:${value.toString(16).padStart(8, '0')}`

/** `WEIGHTS_INVALID` for the folder of a version. */
export function weightsInvalid(folder: string, reason: string, cause?: unknown): TrilithonError {
  return new TrilithonError('WEIGHTS_INVALID', `${folder}: ${reason}`, {
    path: folder,
    hint: 'Wait for the next version; where none comes, look for what else writes to the folder, and for a full disk.',
    cause,
  })
}

/** Places for tensors, in their order, without checksums. Throws `WEIGHTS_INVALID` for what a reader would refuse. */
export function layOut(tensors: readonly TensorToServe[], folder: string): Omit<ServingTensor, 'checksum'>[] {
  let offset = 0
  const placed = tensors.map(({ name, dtype, shape }) => {
    const bytes = elementsOf(shape) * servingDtypes[dtype]
    const tensor = { name, dtype, shape: [...shape], layout: 'row-major', offset, bytes }
    offset = Math.ceil((offset + bytes) / alignment) * alignment
    return tensor
  })
  const fault = findTensorFault(placed.map((tensor) => ({ ...tensor, checksum: formatChecksum(0) })))
  if (fault !== undefined) throw weightsInvalid(folder, fault)
  return placed
}

/** Length of the data file. */
export function dataBytes(tensors: readonly Pick<ServingTensor, 'offset' | 'bytes'>[]): number {
  return tensors.reduce((end, { offset, bytes }) => Math.max(end, offset + bytes), 0)
}

/** Reads a manifest strictly. Throws `WEIGHTS_INVALID`. */
export function parseManifest(text: string, version: number, folder: string): WeightsManifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw weightsInvalid(folder, `the manifest is not JSON: ${(cause as Error).message}`, cause)
  }
  const manifest = value as WeightsManifest
  const fault = findManifestFault(value, version) ?? findTensorFault(manifest.tensors)
  if (fault !== undefined) throw weightsInvalid(folder, fault)
  return manifest
}

function findManifestFault(value: unknown, expected: number): string | undefined {
  if (!isObject(value)) return 'the manifest is not an object'
  const { version, profile, tensors } = value
  if (version !== expected) return `the manifest is of version ${version}, the folder of version ${expected}`
  if (typeof profile !== 'string' || profile === '') return 'the manifest has no profile'
  if (!Array.isArray(tensors)) return 'the manifest has no list of tensors'
  return undefined
}

/** The first thing wrong with a list of tensors: their fields, then their places together. */
function findTensorFault(tensors: readonly unknown[]): string | undefined {
  const names = new Set<string>()
  for (const [index, value] of tensors.entries()) {
    if (!isObject(value)) return `tensor ${index} of the manifest is not an object`
    const { name, dtype, shape, layout, offset, bytes, checksum } = value as unknown as ServingTensor
    if (typeof name !== 'string' || name === '') return `tensor ${index} of the manifest has no name`
    if (names.has(name)) return `tensor ${name} is in the manifest twice`
    names.add(name)
    if (!Object.hasOwn(servingDtypes, dtype)) return `tensor ${name} has the unknown dtype ${dtype}`
    if (!Array.isArray(shape) || !shape.every(isCount)) return `tensor ${name} has no shape`
    if (layout !== 'row-major') return `tensor ${name} has the unknown layout ${layout}`
    if (!isCount(offset) || offset % alignment !== 0) return `tensor ${name} lies at ${offset}, which is no multiple of ${alignment}`
    const expected = elementsOf(shape) * servingDtypes[dtype]
    if (bytes !== expected || !isCount(expected))
      return `tensor ${name} has ${bytes} bytes, its shape [${shape.join(', ')}] ${dtype} has ${expected}`
    if (typeof checksum !== 'string' || !/^crc32:[0-9a-f]{8}$/.test(checksum)) return `tensor ${name} has no checksum`
  }
  return findOverlap(tensors as readonly ServingTensor[])
}

function findOverlap(tensors: readonly ServingTensor[]): string | undefined {
  const filled = tensors.filter(({ bytes }) => bytes > 0).toSorted((a, b) => a.offset - b.offset)
  for (const [index, tensor] of filled.entries()) {
    const next = filled[index + 1]
    if (next !== undefined && tensor.offset + tensor.bytes > next.offset) return `tensors ${tensor.name} and ${next.name} overlap`
  }
  return undefined
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
