/**
 * The part of a file system that checkpoints and transports write through, so that a test can fill the disk or end the process at any call.
 * Synchronous: its callers run in a worker. Errors are those of Node (`ENOSPC`, `ENOENT`, …).
 */
export interface FileLayer {
  /** `r` reads an existing file, `w` creates or empties one. */
  open(path: string, mode: 'r' | 'w'): OpenFile
  makeFolder(path: string): void
  /** Replaces `to` where it is a file; fails where it is a folder that is not empty. */
  rename(from: string, to: string): void
  /** Removes a file or a folder with all that is in it; nothing there is no error. */
  remove(path: string): void
  exists(path: string): boolean
  /** Names in a folder, sorted. */
  list(path: string): readonly string[]
}

export interface OpenFile {
  readonly size: number
  /** Fills `into` from `position`; the number of bytes read is less only at the end of the file. */
  read(into: Uint8Array, position: number): number
  /** Appends all of `bytes`. */
  write(bytes: Uint8Array): void
  /** Returns when what was written is on the disk. */
  sync(): void
  close(): void
}
