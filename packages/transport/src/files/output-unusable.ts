import { TrilithonError } from '@trilithon/core'

/** `OUTPUT_UNUSABLE` for something below `folder` that could not be written or removed. An error that is typed already passes unchanged. */
export function outputUnusable(what: string, folder: string, cause: unknown): TrilithonError {
  if (TrilithonError.is(cause)) return cause
  const isFull = (cause as NodeJS.ErrnoException).code === 'ENOSPC'
  return new TrilithonError('OUTPUT_UNUSABLE', `${what}: ${isFull ? 'the disk is full' : (cause as Error).message}`, {
    path: folder,
    hint: isFull ? `Free space below ${folder}.` : `Make ${folder} writable, or choose another output folder.`,
    cause,
  })
}
