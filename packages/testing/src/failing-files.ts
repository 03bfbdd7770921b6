import type { FileLayer, OpenFile } from '@trilithon/core'

export interface FailingFilesOptions {
  /** The call of a changing operation (open for writing, write, sync, make, rename, remove) that fails, from 1. */
  readonly failAt: number
  /**
   * `ENOSPC`: that call fails as on a full disk, later ones work. `crash`: the process is gone; that call has done half of its work (a write half
   * of its bytes) and every later call fails too.
   */
  readonly kind: 'ENOSPC' | 'crash'
}

/** A file layer whose n-th change fails, over a real one; `calls` counts the changes so far, so a first run without failure tells how many there are. */
export function failingFiles(inner: FileLayer, { failAt, kind }: FailingFilesOptions): FileLayer & { readonly calls: number } {
  let calls = 0
  let gone = false

  const change = (run: () => void, half?: () => void): void => {
    calls += 1
    if (gone) throw fault('crash')
    if (calls !== failAt) {
      run()
      return
    }
    half?.()
    gone = kind === 'crash'
    throw fault(kind)
  }
  const read = <T>(run: () => T): T => {
    if (gone) throw fault('crash')
    return run()
  }
  const wrap = (file: OpenFile): OpenFile => ({
    get size() {
      return file.size
    },
    read: (into, position) => read(() => file.read(into, position)),
    write: (bytes) =>
      change(
        () => file.write(bytes),
        () => file.write(bytes.subarray(0, bytes.length >> 1)),
      ),
    sync: () => change(() => file.sync()),
    // The system closes what a dead process had open.
    close: () => file.close(),
  })

  return {
    get calls() {
      return calls
    },
    open(path, mode) {
      if (mode === 'r') return read(() => wrap(inner.open(path, mode)))
      let file: OpenFile | undefined
      change(() => {
        file = inner.open(path, mode)
      })
      return wrap(file as OpenFile)
    },
    makeFolder: (path) => change(() => inner.makeFolder(path)),
    rename: (from, to) => change(() => inner.rename(from, to)),
    remove: (path) => change(() => inner.remove(path)),
    exists: (path) => read(() => inner.exists(path)),
    list: (path) => read(() => inner.list(path)),
  }
}

function fault(kind: 'ENOSPC' | 'crash'): Error {
  if (kind === 'crash') return new Error('the process has ended')
  return Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
}
