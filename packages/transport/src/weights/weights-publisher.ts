import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { OpenFile } from '@trilithon/core'
import { outputUnusable } from '../files/output-unusable.ts'
import { type TransportFiles, transportFiles } from '../files/transport-files.ts'
import { writeText } from '../files/whole-file.ts'
import { defaultMemoryFolder, fitsInMemory, isOrphan, isOurs, memoryFilePath, removeOrphans } from './memory-files.ts'
import { hasReader } from './reader-lease.ts'
import { bytesOf, toBfloat16 } from './serving-dtype.ts'
import { isStable, readLocation, versionsIn } from './versions.ts'
import {
  continueChecksum,
  dataBytes,
  elementsOf,
  formatChecksum,
  layOut,
  type ServingTensor,
  type TensorToServe,
  versionFolder,
  type WeightsManifest,
  weightFiles,
  weightsInvalid,
} from './weights-manifest.ts'

export interface WeightsPublisherOptions {
  /** Holds the `step_N` folders; made when there is something to publish. */
  readonly broadcasts: string
  readonly profile: string
  readonly tensors: readonly TensorToServe[]
  /** `auto` puts the data into memory that the processes of this machine share, where half of what is free there holds it; else on the disk. */
  readonly memoryBacked: 'auto' | 'never'
  /** `collect` keeps this many of the newest versions, at least 1. */
  readonly keep: number
  /** Versions from this one on are of a run that was given up for an earlier checkpoint; they are removed at the start. */
  readonly discardFrom?: number
  readonly files?: TransportFiles
  readonly memoryFolder?: string
}

export interface PublishedWeights {
  readonly version: number
  readonly folder: string
  /** Length of the data file. */
  readonly bytes: number
  readonly isMemoryBacked: boolean
  /** The data was written into the file of a version that nobody reads any more. */
  readonly isReused: boolean
}

/** Fills `into` with the elements of a tensor from `firstElement` on. */
export type FillTensor = (name: string, firstElement: number, into: Float32Array) => void

/** Publishes versions of one set of tensors. One publisher writes to a folder of broadcasts at a time. */
export interface WeightsPublisher {
  /**
   * Writes a version, whole or not at all. The work is done within the call, where the weights are, and nothing of it is left for later.
   *
   * Rejects with `OUTPUT_UNUSABLE` where the disk is full or the folder not writable, with `WEIGHTS_INVALID` for a version that is there already, and
   * with what `fill` throws; earlier versions are untouched.
   */
  publish(version: number, fill: FillTensor): Promise<PublishedWeights>
  /** Removes versions but the newest ones, those asked for, and those that somebody reads: these go at a later call. Throws `OUTPUT_UNUSABLE`. */
  collect(versionsToKeep: Iterable<number>): void
  /** Removes what lies in memory, with its versions; whoever reads them can read on. Versions on the disk stay. A second call does nothing. */
  dispose(): void
}

/** Elements that are converted, summed and written at once: what a processor's cache holds. */
const chunkElements = 1 << 18

/** Makes a publisher; what a run that died left is removed. Throws `OUTPUT_UNUSABLE`, and `WEIGHTS_INVALID` for tensors that cannot be served. */
export function createWeightsPublisher(options: WeightsPublisherOptions): WeightsPublisher {
  const publisher = new FilePublisher(options)
  publisher.removeLeftovers()
  return publisher
}

interface DataFile {
  readonly path: string
  readonly isMemoryBacked: boolean
  readonly isReused: boolean
}

class FilePublisher implements WeightsPublisher {
  readonly #options: WeightsPublisherOptions
  readonly #files: TransportFiles
  readonly #memoryFolder: string
  readonly #layout: readonly Omit<ServingTensor, 'checksum'>[]
  readonly #bytes: number
  readonly #values = new Float32Array(chunkElements)
  readonly #halves = new Uint16Array(chunkElements)
  /** A data file in memory that nobody reads. */
  #spare: string | undefined

  constructor(options: WeightsPublisherOptions) {
    this.#options = options
    this.#files = options.files ?? transportFiles
    this.#memoryFolder = options.memoryFolder ?? defaultMemoryFolder
    this.#layout = layOut(options.tensors, options.broadcasts)
    this.#bytes = dataBytes(this.#layout)
  }

  async publish(version: number, fill: FillTensor): Promise<PublishedWeights> {
    const { broadcasts } = this.#options
    const folder = versionFolder(broadcasts, version)
    if (this.#files.exists(join(folder, weightFiles.marker))) throw weightsInvalid(folder, 'the version is there already')
    const aside = join(broadcasts, `.writing-step_${version}`)
    let data: DataFile | undefined
    try {
      this.#files.remove(aside)
      // A version that went, whose readers had not released it.
      if (this.#files.exists(folder)) this.#unpublish(version)
      this.#files.makeFolder(join(aside, weightFiles.readers))
      data = this.#takeDataFile(aside)
      const tensors = this.#writeData(data, fill)
      this.#describe(aside, { version, profile: this.#options.profile, tensors }, data)
      this.#renamer(data)(aside, folder)
    } catch (cause) {
      throw this.#withdraw([aside, folder, ...(data === undefined ? [] : [data.path])], cause)
    }
    return { version, folder, bytes: this.#bytes, isMemoryBacked: data.isMemoryBacked, isReused: data.isReused }
  }

  collect(versionsToKeep: Iterable<number>): void {
    const { broadcasts, keep } = this.#options
    try {
      const versions = versionsIn(broadcasts, this.#files)
      const stable = versions.filter((version) => isStable(broadcasts, version, this.#files))
      const kept = new Set([...versionsToKeep, ...stable.slice(-Math.max(1, keep))])
      for (const version of versions) if (!kept.has(version)) this.#retire(version)
    } catch (cause) {
      throw outputUnusable('old versions could not be removed', broadcasts, cause)
    }
  }

  dispose(): void {
    const { broadcasts } = this.#options
    try {
      for (const version of versionsIn(broadcasts, this.#files)) {
        const location = readLocation(versionFolder(broadcasts, version), this.#files)
        if (location !== undefined && isOurs(location, this.#memoryFolder)) this.#unpublish(version)
      }
      if (this.#spare !== undefined) this.#files.remove(this.#spare)
      this.#spare = undefined
    } catch (cause) {
      throw outputUnusable('versions in memory could not be removed', broadcasts, cause)
    }
  }

  /** What was begun, what lost its data with its publisher, what was given up, and files in memory without a publisher. */
  removeLeftovers(): void {
    const { broadcasts, discardFrom = Number.POSITIVE_INFINITY } = this.#options
    try {
      const names = this.#files.exists(broadcasts) ? this.#files.list(broadcasts) : []
      for (const name of names) if (/^\.(writing|retired)-/.test(name)) this.#files.remove(join(broadcasts, name))
      for (const version of versionsIn(broadcasts, this.#files)) {
        const location = readLocation(versionFolder(broadcasts, version), this.#files)
        const isLost = location !== undefined && (isOrphan(location) || !this.#files.exists(location))
        if (isLost || version >= discardFrom || !isStable(broadcasts, version, this.#files)) this.#unpublish(version)
      }
      removeOrphans(this.#memoryFolder, this.#files)
    } catch (cause) {
      throw outputUnusable('what an earlier run left could not be removed', broadcasts, cause)
    }
  }

  #takeDataFile(aside: string): DataFile {
    const spare = this.#spare
    this.#spare = undefined
    if (spare !== undefined) return { path: spare, isMemoryBacked: true, isReused: true }
    if (this.#options.memoryBacked === 'auto' && fitsInMemory(this.#memoryFolder, this.#bytes, this.#files))
      return { path: memoryFilePath(this.#memoryFolder), isMemoryBacked: true, isReused: false }
    return { path: join(aside, weightFiles.data), isMemoryBacked: false, isReused: false }
  }

  #writeData({ path, isReused }: DataFile, fill: FillTensor): ServingTensor[] {
    const file = isReused ? this.#files.openInPlace(path) : this.#files.open(path, 'w')
    try {
      let end = 0
      const tensors = this.#layout.map((tensor) => {
        if (tensor.bytes > 0 && tensor.offset > end) file.write(new Uint8Array(tensor.offset - end))
        if (tensor.bytes > 0) end = tensor.offset + tensor.bytes
        return { ...tensor, checksum: formatChecksum(this.#writeTensor(file, tensor, fill)) }
      })
      file.sync()
      return tensors
    } finally {
      file.close()
    }
  }

  /** Gives the checksum of what was written. */
  #writeTensor(file: OpenFile, { name, dtype, shape }: TensorToServe, fill: FillTensor): number {
    const elements = elementsOf(shape)
    let checksum = 0
    for (let first = 0; first < elements; first += chunkElements) {
      const values = this.#values.subarray(0, Math.min(chunkElements, elements - first))
      fill(name, first, values)
      const stored = dtype === 'F32' ? values : this.#halves.subarray(0, values.length)
      if (stored instanceof Uint16Array) toBfloat16(values, stored)
      const bytes = bytesOf(stored)
      checksum = continueChecksum(bytes, checksum)
      file.write(bytes)
    }
    return checksum
  }

  #describe(aside: string, manifest: WeightsManifest, data: DataFile): void {
    const durability = { isDurable: !data.isMemoryBacked }
    if (data.isMemoryBacked) writeText(join(aside, weightFiles.location), `${data.path}\n`, this.#files, durability)
    const text = JSON.stringify(manifest)
    writeText(join(aside, weightFiles.manifest), text, this.#files, durability)
    const marker = join(aside, weightFiles.marker)
    writeText(`${marker}.tmp`, `${formatChecksum(continueChecksum(new TextEncoder().encode(text)))}\n`, this.#files, durability)
    // By renaming, after which all names in the folder are on the disk too.
    this.#renamer(data)(`${marker}.tmp`, marker)
  }

  /** A version whose data goes with the power need not outlive it, so nothing waits for the disk. */
  #renamer({ isMemoryBacked }: DataFile): (from: string, to: string) => void {
    return isMemoryBacked ? this.#files.move : this.#files.rename
  }

  /** Removes what was begun; gives the error to throw. */
  #withdraw(paths: readonly string[], cause: unknown): unknown {
    // ENOSPC and its like; `fill` has errors of its own.
    const isOfSystem = /^E[A-Z0-9]+$/.test(String((cause as NodeJS.ErrnoException).code))
    const failure = isOfSystem ? outputUnusable('weights could not be written', this.#options.broadcasts, cause) : cause
    try {
      for (const path of paths) this.#files.remove(path)
    } catch (error) {
      // What is left has no name of a version, or no marker; the next start removes it.
      if (failure instanceof Error) failure.message += `; what was begun could not be removed: ${(error as Error).message}`
    }
    return failure
  }

  /**
   * Removes a version that nobody reads; its data in memory becomes the spare. The marker goes first: a reader leaves its lease and then looks for the
   * marker, so either it is seen here or it sees that there is nothing to read.
   */
  #retire(version: number): void {
    const folder = versionFolder(this.#options.broadcasts, version)
    if (hasReader(folder, this.#files)) return
    this.#files.remove(join(folder, weightFiles.marker))
    if (hasReader(folder, this.#files)) return
    this.#spare ??= this.#takeFolder(version)
    if (this.#files.exists(folder)) this.#unpublish(version)
  }

  /** Takes a version away with its data, whoever reads it: what is open stays readable. */
  #unpublish(version: number): void {
    const location = this.#takeFolder(version)
    if (location !== undefined) this.#files.remove(location)
  }

  /**
   * Takes the folder of a version away; gives the path of its data file where that is one of ours in memory. The folder is renamed first, since a reader
   * that begins may still add to it.
   */
  #takeFolder(version: number): string | undefined {
    const { broadcasts } = this.#options
    const folder = versionFolder(broadcasts, version)
    const location = readLocation(folder, this.#files)
    const retired = join(broadcasts, `.retired-step_${version}-${randomBytes(4).toString('hex')}`)
    this.#files.remove(join(folder, weightFiles.marker))
    this.#files.move(folder, retired)
    this.#files.remove(retired)
    return location !== undefined && isOurs(location, this.#memoryFolder) ? location : undefined
  }
}
