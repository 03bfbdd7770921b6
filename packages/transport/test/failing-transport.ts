import type { FileLayer } from '@trilithon/core'
import { type FailingFilesOptions, failingFiles } from '@trilithon/testing'
import type { AsyncFile, AsyncFiles } from '../src/files/async-files.ts'
import { type TransportFiles, transportFiles } from '../src/files/transport-files.ts'

/** The layer of weights over the real one, whose n-th change fails; opening in place counts as one. */
export function failingTransport(options: FailingFilesOptions): TransportFiles & { readonly calls: number } {
  let inPlace = false
  const inner: FileLayer = {
    ...transportFiles,
    open: (path, mode) => (inPlace ? transportFiles.openInPlace(path) : transportFiles.open(path, mode)),
  }
  const failing = failingFiles(inner, options)
  return {
    ...failing,
    get calls() {
      return failing.calls
    },
    openInPlace(path) {
      inPlace = true
      try {
        return failing.open(path, 'w')
      } finally {
        inPlace = false
      }
    },
    move: failing.rename,
    freeBytes: transportFiles.freeBytes,
  }
}

/** A file layer as rollouts use one. */
export function asAsync(files: FileLayer): AsyncFiles {
  return {
    async open(path, mode): Promise<AsyncFile> {
      const file = files.open(path, mode)
      return {
        size: file.size,
        read: async (into, position) => file.read(into, position),
        write: async (bytes) => file.write(bytes),
        sync: async () => file.sync(),
        close: async () => file.close(),
      }
    },
    makeFolder: async (path) => files.makeFolder(path),
    rename: async (from, to) => files.rename(from, to),
    remove: async (path) => files.remove(path),
    exists: async (path) => files.exists(path),
    list: async (path) => files.list(path),
  }
}
