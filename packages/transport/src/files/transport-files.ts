import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type { FileLayer, OpenFile } from '@trilithon/core'

/** What weights are written through: a file layer, and what files in memory need besides. */
export interface TransportFiles extends FileLayer {
  /** Opens an existing file to write it again from its start; its length stays, and so do its pages. */
  openInPlace(path: string): OpenFile
  /** Renames as `rename` does, without waiting for the disk: the old name may be back after the power went. */
  move(from: string, to: string): void
  /** Bytes that may still be written below a folder: free on its file system, and for one in memory also free in this machine or its container. */
  freeBytes(folder: string): number
}

/** The file system of this machine. */
export const transportFiles: TransportFiles = {
  open(path, mode) {
    const fd = openSync(path, mode)
    return new DescriptorFile(fd, mode === 'r' ? fstatSync(fd).size : 0)
  },
  openInPlace: (path) => new DescriptorFile(openSync(path, 'r+'), 0),
  move: renameSync,
  makeFolder: (path) => void mkdirSync(path, { recursive: true }),
  rename(from, to) {
    renameSync(from, to)
    // The new name itself is only safe once its folder is.
    const folder = openSync(dirname(to), 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
  },
  remove: (path) => rmSync(path, { recursive: true, force: true }),
  exists: existsSync,
  list: (path) => readdirSync(path).sort(),
  freeBytes(folder) {
    const { bavail, bsize } = statfsSync(folder)
    return Math.min(bavail * bsize, process.availableMemory())
  },
}

/** The system refuses longer reads and writes at once. */
const maxCallBytes = 1 << 30

class DescriptorFile implements OpenFile {
  readonly #fd: number
  #end = 0
  size: number

  constructor(fd: number, size: number) {
    this.#fd = fd
    this.size = size
  }

  read(into: Uint8Array, position: number): number {
    let done = 0
    while (done < into.length) {
      const count = readSync(this.#fd, into, done, Math.min(maxCallBytes, into.length - done), position + done)
      if (count === 0) break
      done += count
    }
    return done
  }

  write(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; ) {
      const count = writeSync(this.#fd, bytes, done, Math.min(maxCallBytes, bytes.length - done), this.#end)
      done += count
      this.#end += count
    }
    this.size = Math.max(this.size, this.#end)
  }

  sync(): void {
    fsyncSync(this.#fd)
  }

  close(): void {
    closeSync(this.#fd)
  }
}
