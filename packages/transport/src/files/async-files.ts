import { access, type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * What rollouts are written and read through: a file layer whose calls do not hold up the thread, since the orchestrator serves requests meanwhile.
 * The names mean what they mean in `FileLayer`.
 */
export interface AsyncFiles {
  open(path: string, mode: 'r' | 'w'): Promise<AsyncFile>
  makeFolder(path: string): Promise<void>
  rename(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
  exists(path: string): Promise<boolean>
  list(path: string): Promise<readonly string[]>
}

export interface AsyncFile {
  readonly size: number
  read(into: Uint8Array, position: number): Promise<number>
  write(bytes: Uint8Array): Promise<void>
  sync(): Promise<void>
  close(): Promise<void>
}

/** The file system of this machine. */
export const asyncFiles: AsyncFiles = {
  async open(path, mode) {
    const handle = await open(path, mode)
    return new HandleFile(handle, mode === 'r' ? (await handle.stat()).size : 0)
  },
  makeFolder: async (path) => void (await mkdir(path, { recursive: true })),
  async rename(from, to) {
    await rename(from, to)
    // The new name itself is only safe once its folder is.
    const folder = await open(dirname(to), 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  },
  remove: (path) => rm(path, { recursive: true, force: true }),
  exists: (path) =>
    access(path).then(
      () => true,
      () => false,
    ),
  list: async (path) => (await readdir(path)).sort(),
}

/** The system refuses longer reads and writes at once. */
const maxCallBytes = 1 << 30

class HandleFile implements AsyncFile {
  readonly #handle: FileHandle
  size: number

  constructor(handle: FileHandle, size: number) {
    this.#handle = handle
    this.size = size
  }

  async read(into: Uint8Array, position: number): Promise<number> {
    let done = 0
    while (done < into.length) {
      const { bytesRead } = await this.#handle.read(into, done, Math.min(maxCallBytes, into.length - done), position + done)
      if (bytesRead === 0) break
      done += bytesRead
    }
    return done
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.#handle.write(bytes, done, Math.min(maxCallBytes, bytes.length - done))
      done += bytesWritten
    }
    this.size += bytes.length
  }

  async sync(): Promise<void> {
    await this.#handle.sync()
  }

  async close(): Promise<void> {
    await this.#handle.close()
  }
}
