import { randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { FileLayer } from '@trilithon/core'
import { isAlive, type ProcessIdentity, thisProcess } from '../files/process-identity.ts'
import { writeText } from '../files/whole-file.ts'
import { weightFiles } from './weights-manifest.ts'

/** A lease of another machine, whose process cannot be looked at, counts for this long after it was taken. */
export const foreignLeaseMs = 60 * 60 * 1000

export interface ReaderLease {
  /** Ends the lease; a second call does nothing. */
  release(): void
}

/** Says in the folder of a version that this process reads it. The folder of leases is the publisher's; without it this throws. */
export function takeLease(folder: string, files: FileLayer): ReaderLease {
  const path = join(folder, weightFiles.readers, `${process.pid}-${randomBytes(6).toString('hex')}`)
  writeText(path, JSON.stringify(thisProcess()), files, { isDurable: false })
  let isHeld = true
  return {
    release() {
      if (isHeld) files.remove(path)
      isHeld = false
    },
  }
}

/** Whether somebody reads the version: a living process of this machine, or one elsewhere whose lease is not older than `foreignLeaseMs`. */
export function hasReader(folder: string, files: FileLayer): boolean {
  const readers = join(folder, weightFiles.readers)
  return files.exists(readers) && files.list(readers).some((name) => counts(join(readers, name)))
}

function counts(path: string): boolean {
  let text: string
  let takenAt: number
  try {
    text = readFileSync(path, 'utf8')
    takenAt = statSync(path).mtimeMs
  } catch (error) {
    // Released meanwhile.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
  const reader = parseIdentity(text)
  // A lease that is being written has no text yet.
  return (reader === undefined ? null : isAlive(reader)) ?? Date.now() - takenAt < foreignLeaseMs
}

function parseIdentity(text: string): ProcessIdentity | undefined {
  try {
    const { host, pid, started } = JSON.parse(text) as ProcessIdentity
    return typeof host === 'string' && Number.isSafeInteger(pid) && typeof started === 'string' ? { host, pid, started } : undefined
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return undefined
    throw error
  }
}
