import { TrilithonError } from '@trilithon/core'
import { rolloutsInvalid } from '../msgpack/field-reader.ts'
import type { AsyncFile, AsyncFiles } from './async-files.ts'

/** Opens a file for reading and closes it whatever `use` does. Throws `ROLLOUTS_INVALID` where it cannot be opened or read. */
export async function withFile<T>(path: string, files: AsyncFiles, use: (file: AsyncFile) => Promise<T>): Promise<T> {
  const unreadable = (cause: unknown) =>
    TrilithonError.is(cause) ? cause : rolloutsInvalid(path, '', `cannot be read: ${(cause as Error).message}`, cause)
  let file: AsyncFile
  try {
    file = await files.open(path, 'r')
  } catch (cause) {
    throw unreadable(cause)
  }
  try {
    return await use(file)
  } catch (cause) {
    throw unreadable(cause)
  } finally {
    await file.close()
  }
}

/** All bytes of a file, up to its end when it got shorter meanwhile. */
export async function readWhole(file: AsyncFile): Promise<Uint8Array> {
  // Not filled with zeros first: a batch may be large.
  const all = new Uint8Array(Buffer.allocUnsafeSlow(file.size).buffer)
  return all.subarray(0, await file.read(all, 0))
}
