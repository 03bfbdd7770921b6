import { join } from 'node:path'
import type { FileLayer } from '@trilithon/core'
import { watchFolders } from '../files/folder-watch.ts'
import { transportFiles } from '../files/transport-files.ts'
import { readText } from '../files/whole-file.ts'
import { type ReaderLease, takeLease } from './reader-lease.ts'
import { versionFolder, versionOf, weightFiles } from './weights-manifest.ts'

/** Where the data file of a version lies outside its folder, or undefined. */
export function readLocation(folder: string, files: FileLayer): string | undefined {
  const path = join(folder, weightFiles.location)
  return files.exists(path) ? readText(path, files).trim() : undefined
}

/** Whether a version is complete and its data still there: a data file in memory goes with its publisher. */
export function isStable(broadcasts: string, version: number, files: FileLayer = transportFiles): boolean {
  const folder = versionFolder(broadcasts, version)
  try {
    if (!files.exists(join(folder, weightFiles.marker))) return false
    const location = readLocation(folder, files)
    return location === undefined || files.exists(location)
  } catch (error) {
    return isGone(error)
  }
}

/** Numbers of all folders of versions, stable or not, rising. */
export function versionsIn(broadcasts: string, files: FileLayer): number[] {
  try {
    if (!files.exists(broadcasts)) return []
    return files
      .list(broadcasts)
      .flatMap((name) => versionOf(name) ?? [])
      .sort((a, b) => a - b)
  } catch (error) {
    isGone(error)
    return []
  }
}

/** The highest version that is stable, or null. `broadcasts` need not exist. */
export function latestVersion(broadcasts: string, files: FileLayer = transportFiles): number | null {
  return versionsIn(broadcasts, files).findLast((version) => isStable(broadcasts, version, files)) ?? null
}

/**
 * Keeps a version from being tidied away until the lease is released, for one who tells others to read it. Null where it is gone, or not stable.
 */
export function holdVersion(broadcasts: string, version: number, files: FileLayer = transportFiles): ReaderLease | null {
  if (!isStable(broadcasts, version, files)) return null
  let lease: ReaderLease
  try {
    lease = takeLease(versionFolder(broadcasts, version), files)
  } catch (error) {
    isGone(error)
    return null
  }
  // A publisher takes the marker away first, and looks for readers then.
  if (isStable(broadcasts, version, files)) return lease
  lease.release()
  return null
}

export interface WatchVersionsOptions {
  /** Ends the watch. */
  readonly signal: AbortSignal
  /** Only versions above this one are told of; null tells of whatever is there. */
  readonly above?: number | null
}

/**
 * Calls `onVersion` with the highest stable version now and whenever there is a higher one; versions that were overtaken meanwhile are skipped, and the
 * next look waits for `onVersion`. Resolves when the signal ends it, rejects with what `onVersion` throws.
 */
export async function watchVersions(
  broadcasts: string,
  onVersion: (version: number) => void | Promise<void>,
  { signal, above = null }: WatchVersionsOptions,
): Promise<void> {
  const watch = watchFolders([broadcasts])
  let last = above ?? -1
  try {
    while (!signal.aborted) {
      const version = latestVersion(broadcasts)
      if (version !== null && version > last) {
        last = version
        await onVersion(version)
      } else {
        await watch.changed(signal)
      }
    }
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error
  } finally {
    watch.close()
  }
}

/** False where a folder was removed while it was looked at; throws any other error. */
function isGone(error: unknown): false {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  return false
}
