import { type FSWatcher, watch } from 'node:fs'

/** How often a folder is looked at when the system tells of no change, as on a network's file system. */
export const pollMs = 100

export interface FolderWatch {
  /** Resolves at the next sign of a change in one of the folders, and after `pollMs` in any case. Rejects with the signal's reason. */
  changed(signal?: AbortSignal): Promise<void>
  close(): void
}

/**
 * Wakes whoever waits for a file. Folders need not exist yet: they are watched once they do. A system that is out of watches costs promptness
 * (`pollMs`), never a change.
 */
export function watchFolders(folders: readonly string[]): FolderWatch {
  const watchers = new Map<string, FSWatcher>()
  /** A change between two calls of `changed` ends the next one at once. */
  let isPending = false
  let wake: (() => void) | undefined
  const onChange = () => {
    isPending = true
    wake?.()
  }
  /** Folders whose watch broke: from then on they are looked at. */
  const broken = new Set<string>()
  const begin = (folder: string) => {
    if (watchers.has(folder) || broken.has(folder)) return
    try {
      const watcher = watch(folder, { persistent: false }, onChange)
      watcher.on('error', () => {
        watcher.close()
        broken.add(folder)
      })
      watchers.set(folder, watcher)
      // Something may have come between the last look and the watch.
      isPending = true
    } catch (error) {
      // Not there yet, or no watch to be had: the next look tells.
      if ((error as NodeJS.ErrnoException).code === undefined) throw error
    }
  }
  return {
    async changed(signal) {
      signal?.throwIfAborted()
      for (const folder of folders) begin(folder)
      if (!isPending)
        await new Promise<void>((resolve) => {
          const end = () => {
            clearTimeout(timer)
            signal?.removeEventListener('abort', end)
            wake = undefined
            resolve()
          }
          const timer = setTimeout(end, pollMs)
          signal?.addEventListener('abort', end, { once: true })
          wake = end
        })
      isPending = false
      signal?.throwIfAborted()
    },
    close() {
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}
