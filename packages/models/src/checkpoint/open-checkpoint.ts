import { join } from 'node:path'
import { type FileLayer, type OpenFile, TrilithonError } from '@trilithon/core'
import { z } from 'zod'
import { toFloat32 } from './convert.ts'
import { headerLength, parseHeader, type StoredDtype, storedBytes, type TensorEntry } from './safetensors-header.ts'

/** Elements that one read holds beside the target. */
const chunkElements = 1 << 20

const Index = z.looseObject({ weight_map: z.record(z.string(), z.string()) })

/** The tensors of a Hugging Face folder, in one file or many. */
export interface Checkpoint {
  readonly folder: string
  readonly tensors: ReadonlyMap<string, TensorEntry & { readonly file: string }>
  /** Gives a tensor's elements as float32 in pieces, in order; nothing larger than a piece is held. Throws `CHECKPOINT_INVALID`. */
  read(name: string, take: (values: Float32Array, firstElement: number) => void): void
  /** The same pieces one after another, each valid until the next: for a thread that has something to do between two of them. */
  pieces(name: string): Generator<{ readonly values: Float32Array; readonly firstElement: number }, void>
  close(): void
}

/**
 * Opens `model.safetensors`, or the files that `model.safetensors.index.json` names, and checks all headers against each other before any tensor
 * is read. Throws `CHECKPOINT_INVALID`.
 */
export function openCheckpoint(folder: string, files: FileLayer): Checkpoint {
  const map = files.exists(join(folder, indexName)) ? readIndex(folder, files) : undefined
  const names = map === undefined ? [singleName] : [...new Set(map.values())].sort()
  const open = new Map<string, OpenFile>()
  const tensors = new Map<string, TensorEntry & { readonly file: string }>()
  const close = () => {
    for (const file of open.values()) file.close()
    open.clear()
  }
  try {
    for (const name of names) {
      const file = openFile(folder, name, files)
      open.set(name, file)
      for (const entry of readHeader(file, join(folder, name))) {
        // A file may hold more than the index says of it, and twice the same only by mistake.
        if (map !== undefined && map.get(entry.name) !== name) continue
        tensors.set(entry.name, { ...entry, file: name })
      }
    }
    const missing = [...(map?.keys() ?? [])].filter((name) => !tensors.has(name))
    if (missing.length > 0)
      throw invalid(join(folder, indexName), `the index names ${missing[0]} in ${map?.get(missing[0] ?? '')}, which does not hold it`)
  } catch (error) {
    close()
    throw error
  }
  const pieces = (name: string) => readTensor(folder, tensors.get(name), name, open)
  return {
    folder,
    tensors,
    read(name, take) {
      for (const { values, firstElement } of pieces(name)) take(values, firstElement)
    },
    pieces,
    close,
  }
}

const singleName = 'model.safetensors'
const indexName = 'model.safetensors.index.json'

function readIndex(folder: string, files: FileLayer): Map<string, string> {
  const path = join(folder, indexName)
  const file = openFile(folder, indexName, files)
  try {
    const bytes = new Uint8Array(file.size)
    file.read(bytes, 0)
    const { weight_map: map } = Index.parse(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)))
    const outside = Object.values(map).find((name) => name.includes('/') || name.includes('\\') || name === '..')
    if (outside !== undefined) throw invalid(path, `it names ${outside}, which is not a file of this folder`)
    return new Map(Object.entries(map))
  } catch (cause) {
    if (TrilithonError.is(cause)) throw cause
    throw invalid(path, 'it is no index', cause)
  } finally {
    file.close()
  }
}

function openFile(folder: string, name: string, files: FileLayer): OpenFile {
  const path = join(folder, name)
  try {
    return files.open(path, 'r')
  } catch (cause) {
    const missing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
    throw new TrilithonError(
      'CHECKPOINT_INVALID',
      missing ? `${path} is missing` : `${path} cannot be opened: ${(cause as Error).message}`,
      {
        path,
        hint: 'Give the folder of a checkpoint in safetensors format.',
        cause,
      },
    )
  }
}

function readHeader(file: OpenFile, path: string): TensorEntry[] {
  const prefix = new Uint8Array(8)
  const length = headerLength(prefix.subarray(0, file.read(prefix, 0)), file.size, path)
  const header = new Uint8Array(length)
  file.read(header, 8)
  return parseHeader(header, file.size, path)
}

function* readTensor(
  folder: string,
  entry: (TensorEntry & { readonly file: string }) | undefined,
  name: string,
  open: ReadonlyMap<string, OpenFile>,
): ReturnType<Checkpoint['pieces']> {
  if (entry === undefined) throw invalid(folder, `it has no tensor ${name}`)
  const path = join(folder, entry.file)
  const file = open.get(entry.file)
  if (file === undefined) throw new TrilithonError('INVARIANT_BROKEN', `${path} was read after the checkpoint was closed`)
  if (!Object.hasOwn(storedBytes, entry.dtype))
    throw invalid(path, `${name} has dtype ${entry.dtype}; supported are ${Object.keys(storedBytes).join(', ')}`)
  const dtype = entry.dtype as StoredDtype
  const width = storedBytes[dtype]
  const count = entry.bytes / width
  const bytes = new Uint8Array(Math.min(count, chunkElements) * width)
  const values = new Float32Array(Math.min(count, chunkElements))
  for (let first = 0; first < count; first += chunkElements) {
    const size = Math.min(chunkElements, count - first)
    const piece = bytes.subarray(0, size * width)
    if (file.read(piece, entry.offset + first * width) < piece.length) throw invalid(path, `${name} ends before its last element`)
    toFloat32(dtype, piece, values.subarray(0, size))
    yield { values: values.subarray(0, size), firstElement: first }
  }
}

function invalid(path: string, reason: string, cause?: unknown): TrilithonError {
  return new TrilithonError('CHECKPOINT_INVALID', `${path}: ${reason}`, {
    path,
    hint: 'Copy the checkpoint again, or give another folder.',
    cause,
  })
}
