import { basename, join } from 'node:path'
import { type FileLayer, invariant, type OpenFile, TrilithonError } from '@trilithon/core'
import { transportFiles } from '../files/transport-files.ts'
import { readBytes, readText } from '../files/whole-file.ts'
import { takeLease } from './reader-lease.ts'
import { bytesOf, fromBfloat16 } from './serving-dtype.ts'
import { readLocation } from './versions.ts'
import {
  continueChecksum,
  dataBytes,
  elementsOf,
  formatChecksum,
  parseManifest,
  type ServingTensor,
  versionOf,
  type WeightsManifest,
  weightFiles,
  weightsInvalid,
} from './weights-manifest.ts'

/** A version that is being read. Its data is not overwritten before `release`. */
export interface OpenWeights {
  readonly manifest: WeightsManifest
  /** Fills `into` with the elements of a tensor from `firstElement` on, as float32. Throws `WEIGHTS_INVALID` for a range that the tensor lacks. */
  read(name: string, firstElement: number, into: Float32Array): void
  /** Throws `WEIGHTS_INVALID` where the bytes of a tensor are not those that were published. */
  verify(name: string): void
  /** The same, with a stop after every piece: for a thread that has something to do between two of them. */
  verifyInPieces(name: string): Generator<void, void>
  /** Ends the reading. A second call does nothing. */
  release(): void
}

/** Elements that are converted at once. */
const chunkElements = 1 << 18

/**
 * Opens a published version by its folder, wherever its data lies, and tells its publisher that it is read. Marker, manifest and the length of the data are
 * checked here, the bytes of tensors by `verify`. Throws `WEIGHTS_INVALID`; then nothing is held.
 */
export function openWeights(folder: string, { files = transportFiles }: { readonly files?: FileLayer } = {}): OpenWeights {
  const version = versionOf(basename(folder))
  if (version === undefined) throw weightsInvalid(folder, 'is not named after a version (step_N)')
  if (!files.exists(join(folder, weightFiles.marker))) throw weightsInvalid(folder, 'there is no marker STABLE')
  // Before the marker is read: a publisher takes the marker away first, and looks for readers then.
  const lease = attempt(folder, 'no lease can be taken', () => takeLease(folder, files))
  try {
    const manifest = readManifest(folder, version, files)
    const location = attempt(folder, 'LOCATION cannot be read', () => readLocation(folder, files))
    const path = location ?? join(folder, weightFiles.data)
    const file = attempt(folder, `the data file ${path} cannot be opened`, () => files.open(path, 'r'))
    const expected = dataBytes(manifest.tensors)
    if (file.size !== expected) {
      file.close()
      throw weightsInvalid(folder, `the data file ${path} has ${file.size} bytes, its tensors ${expected}`)
    }
    return new FileWeights(folder, manifest, file, () => lease.release())
  } catch (error) {
    lease.release()
    throw error
  }
}

function readManifest(folder: string, version: number, files: FileLayer): WeightsManifest {
  const marker = attempt(folder, 'there is no marker STABLE', () => readText(join(folder, weightFiles.marker), files)).trim()
  const bytes = attempt(folder, 'the manifest cannot be read', () => readBytes(join(folder, weightFiles.manifest), files))
  const manifest = parseManifest(new TextDecoder().decode(bytes), version, folder)
  const checksum = formatChecksum(continueChecksum(bytes))
  if (marker !== checksum) throw weightsInvalid(folder, `the manifest has the checksum ${checksum}, the marker STABLE says "${marker}"`)
  return manifest
}

class FileWeights implements OpenWeights {
  readonly manifest: WeightsManifest
  readonly #folder: string
  readonly #file: OpenFile
  readonly #tensors: ReadonlyMap<string, ServingTensor>
  readonly #onRelease: () => void
  readonly #half = new Uint16Array(chunkElements)
  #isReleased = false

  constructor(folder: string, manifest: WeightsManifest, file: OpenFile, onRelease: () => void) {
    this.manifest = manifest
    this.#folder = folder
    this.#file = file
    this.#tensors = new Map(manifest.tensors.map((tensor) => [tensor.name, tensor]))
    this.#onRelease = onRelease
  }

  read(name: string, firstElement: number, into: Float32Array): void {
    const { dtype, shape, offset } = this.#find(name)
    const elements = elementsOf(shape)
    if (!Number.isSafeInteger(firstElement) || firstElement < 0 || firstElement + into.length > elements)
      throw weightsInvalid(this.#folder, `tensor ${name} has ${elements} elements, not ${into.length} from ${firstElement} on`)
    if (dtype === 'F32') {
      this.#fill(name, bytesOf(into), offset + firstElement * 4)
      return
    }
    for (let done = 0; done < into.length; done += chunkElements) {
      const piece = into.subarray(done, done + chunkElements)
      const half = this.#half.subarray(0, piece.length)
      this.#fill(name, bytesOf(half), offset + (firstElement + done) * 2)
      fromBfloat16(half, piece)
    }
  }

  verify(name: string): void {
    for (const _ of this.verifyInPieces(name));
  }

  *verifyInPieces(name: string): Generator<void, void> {
    const { offset, bytes, checksum } = this.#find(name)
    // Of its own: a read between two pieces uses the other.
    const chunk = new Uint8Array(Math.min(bytes, chunkElements * 2))
    let found = 0
    for (let done = 0; done < bytes; done += chunk.length) {
      const piece = chunk.subarray(0, Math.min(chunk.length, bytes - done))
      this.#fill(name, piece, offset + done)
      found = continueChecksum(piece, found)
      yield
    }
    if (formatChecksum(found) !== checksum)
      throw weightsInvalid(this.#folder, `tensor ${name} has the checksum ${formatChecksum(found)}, the manifest says ${checksum}`)
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#file.close()
    this.#onRelease()
  }

  #find(name: string): ServingTensor {
    invariant(!this.#isReleased, `${this.#folder} is read after it was released`)
    const tensor = this.#tensors.get(name)
    if (tensor === undefined) throw weightsInvalid(this.#folder, `there is no tensor ${name}`)
    return tensor
  }

  #fill(name: string, into: Uint8Array, position: number): void {
    const count = attempt(this.#folder, `tensor ${name} cannot be read`, () => this.#file.read(into, position))
    if (count !== into.length)
      throw weightsInvalid(this.#folder, `the data file ends ${into.length - count} bytes before tensor ${name} does`)
  }
}

/** Gives errors of the file system the code of this package and what was tried. */
function attempt<T>(folder: string, what: string, run: () => T): T {
  try {
    return run()
  } catch (cause) {
    if (TrilithonError.is(cause)) throw cause
    throw weightsInvalid(folder, `${what}: ${(cause as Error).message}`, cause)
  }
}
