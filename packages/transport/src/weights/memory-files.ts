import { randomBytes } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import type { FileLayer } from '@trilithon/core'
import { isAlive, type ProcessIdentity, thisProcess } from '../files/process-identity.ts'
import type { TransportFiles } from '../files/transport-files.ts'

/** A file system in memory that every process of the machine sees. */
export const defaultMemoryFolder = '/dev/shm'

const prefix = 'trilithon-weights'

/** A new path for a data file in memory. Its name tells whose it is, so that whoever finds it can tell whether it is still of use. */
export function memoryFilePath(memoryFolder: string): string {
  const { host, pid, started } = thisProcess()
  return join(memoryFolder, `${prefix}-${host}-${pid}-${started}-${randomBytes(6).toString('hex')}.bin`)
}

/** The process that a data file in memory belongs to; undefined for the name of something else. */
export function ownerOf(path: string): ProcessIdentity | undefined {
  const [, host, pid, started] = new RegExp(`^${prefix}-([A-Za-z0-9.]+)-(\\d+)-(\\d*)-[0-9a-f]+\\.bin$`).exec(basename(path)) ?? []
  return host === undefined || pid === undefined || started === undefined ? undefined : { host, pid: Number(pid), started }
}

/** Whether the file is in this folder and of this process, so that it may be written again. */
export function isOurs(path: string, memoryFolder: string): boolean {
  const owner = ownerOf(path)
  const { host, pid, started } = thisProcess()
  return dirname(path) === memoryFolder && owner?.host === host && owner.pid === pid && owner.started === started
}

/** Whether the publisher that wrote the file has ended; false where that cannot be known. */
export function isOrphan(path: string): boolean {
  const owner = ownerOf(path)
  return owner !== undefined && isAlive(owner) === false
}

/** A file may take at most half of the memory that is free: the rest is for those who compute. */
export function fitsInMemory(memoryFolder: string, bytes: number, files: TransportFiles): boolean {
  return files.exists(memoryFolder) && bytes <= files.freeBytes(memoryFolder) / 2
}

/** Removes what publishers that have ended left in memory. What belongs to somebody else stays. */
export function removeOrphans(memoryFolder: string, files: FileLayer): void {
  if (!files.exists(memoryFolder)) return
  for (const name of files.list(memoryFolder)) {
    const path = join(memoryFolder, name)
    if (!isOrphan(path)) continue
    try {
      files.remove(path)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'EPERM' && code !== 'EACCES') throw error
    }
  }
}
