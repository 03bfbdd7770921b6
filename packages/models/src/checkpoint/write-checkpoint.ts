import { dirname, join } from 'node:path'
import { type FileLayer, TrilithonError } from '@trilithon/core'
import { elementsOf, type StoredPart, type WeightSpec } from '../weight-spec.ts'
import { fromFloat32 } from './convert.ts'
import { encodeHeader, storedBytes } from './safetensors-header.ts'

export interface WriteCheckpointOptions {
  readonly files: FileLayer
  readonly dtype: 'F32' | 'BF16'
  /** Files beside the weights: `config.json`, tokeniser, by name. */
  readonly documents: Readonly<Record<string, string>>
  /** A new file begins before this is exceeded; a single larger tensor has a file of its own. */
  readonly maxShardBytes?: number
}

interface Shard {
  readonly name: string
  readonly parts: readonly { readonly spec: WeightSpec; readonly part: StoredPart }[]
}

const defaultShardBytes = 5_000_000_000
const chunkElements = 1 << 20

/**
 * Writes weights as a Hugging Face folder: aside, then renamed, so that `folder` is either as it was or complete. `give` fills `into` with the
 * elements of a parameter from `first` on; one piece is held at a time.
 *
 * Throws `CHECKPOINT_WRITE_FAILED` with the file that failed; what existed is untouched, and what was begun is removed.
 */
export function writeCheckpoint(
  folder: string,
  specs: readonly WeightSpec[],
  give: (spec: WeightSpec, first: number, into: Float32Array) => void,
  options: WriteCheckpointOptions,
): void {
  const { files, dtype, documents } = options
  const aside = `${folder}.writing`
  let current = aside
  try {
    if (files.exists(folder)) throw new Error('the folder exists already')
    files.remove(aside)
    files.makeFolder(aside)
    const shards = planShards(specs, dtype, options.maxShardBytes ?? defaultShardBytes)
    for (const shard of shards) {
      current = join(aside, shard.name)
      writeShard(current, shard, dtype, give, files)
    }
    const texts = shards.length === 1 ? documents : { ...documents, 'model.safetensors.index.json': indexOf(shards, dtype) }
    for (const [name, text] of Object.entries(texts)) {
      current = join(aside, name)
      writeText(current, text, files)
    }
    current = folder
    files.rename(aside, folder)
  } catch (cause) {
    if (TrilithonError.is(cause)) throw cause
    files.remove(aside)
    throw checkpointWriteFailure(current, dirname(folder), cause)
  }
}

/** `CHECKPOINT_WRITE_FAILED` for a file that could not be written; `below` is where space is needed when the disk is full. */
export function checkpointWriteFailure(path: string, below: string, cause: unknown): TrilithonError {
  const isFull = (cause as NodeJS.ErrnoException).code === 'ENOSPC'
  return new TrilithonError(
    'CHECKPOINT_WRITE_FAILED',
    `${path} could not be written: ${isFull ? 'the disk is full' : (cause as Error).message}`,
    {
      path,
      hint: isFull ? `Free space below ${below}.` : 'Give another folder, or make room.',
      cause,
    },
  )
}

/** Tensors in the order of the parameters, cut into files of at most the given size. */
function planShards(specs: readonly WeightSpec[], dtype: 'F32' | 'BF16', maxBytes: number): Shard[] {
  const groups: { spec: WeightSpec; part: StoredPart }[][] = [[]]
  let size = 0
  for (const spec of specs) {
    for (const part of spec.parts) {
      const bytes = elementsOf(part.shape) * storedBytes[dtype]
      if (size > 0 && size + bytes > maxBytes) {
        groups.push([])
        size = 0
      }
      groups.at(-1)?.push({ spec, part })
      size += bytes
    }
  }
  const number = (value: number) => String(value).padStart(5, '0')
  return groups.map((parts, index) => ({
    name: groups.length === 1 ? 'model.safetensors' : `model-${number(index + 1)}-of-${number(groups.length)}.safetensors`,
    parts,
  }))
}

function writeShard(
  path: string,
  { parts }: Shard,
  dtype: 'F32' | 'BF16',
  give: (spec: WeightSpec, first: number, into: Float32Array) => void,
  files: FileLayer,
): void {
  const file = files.open(path, 'w')
  try {
    file.write(encodeHeader(parts.map(({ part: { name, shape } }) => ({ name, dtype, shape }))))
    for (const { spec, part } of parts) {
      const count = elementsOf(part.shape)
      for (let first = 0; first < count; first += chunkElements) {
        const values = new Float32Array(Math.min(chunkElements, count - first))
        give(spec, part.offset + first, values)
        file.write(fromFloat32(dtype, values))
      }
    }
    file.sync()
  } finally {
    file.close()
  }
}

function writeText(path: string, text: string, files: FileLayer): void {
  const file = files.open(path, 'w')
  try {
    file.write(new TextEncoder().encode(text))
    file.sync()
  } finally {
    file.close()
  }
}

function indexOf(shards: readonly Shard[], dtype: 'F32' | 'BF16'): string {
  const all = shards.flatMap(({ name, parts }) => parts.map(({ part }) => ({ name, part })))
  const total = all.reduce((sum, { part }) => sum + elementsOf(part.shape) * storedBytes[dtype], 0)
  const map = Object.fromEntries(all.map(({ name, part }) => [part.name, name]).sort())
  return `${JSON.stringify({ metadata: { total_size: total }, weight_map: map }, null, 2)}\n`
}
