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
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import type { FileLayer, OpenFile } from '@trilithon/core'

/** The file system of this machine. */
export const nodeFiles: FileLayer = {
  open(path, mode) {
    const fd = openSync(path, mode)
    return new NodeFile(fd, mode === 'r' ? fstatSync(fd).size : 0)
  },
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
}

class NodeFile implements OpenFile {
  readonly #fd: number
  size: number

  constructor(fd: number, size: number) {
    this.#fd = fd
    this.size = size
  }

  read(into: Uint8Array, position: number): number {
    let done = 0
    while (done < into.length) {
      const count = readSync(this.#fd, into, done, into.length - done, position + done)
      if (count === 0) break
      done += count
    }
    return done
  }

  write(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; ) done += writeSync(this.#fd, bytes, done, bytes.length - done)
    this.size += bytes.length
  }

  sync(): void {
    fsyncSync(this.#fd)
  }

  close(): void {
    closeSync(this.#fd)
  }
}
