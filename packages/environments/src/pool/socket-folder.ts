import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Those that are there, for the end of a process that disposes of nothing. */
const folders = new Set<string>()

/** A new folder for sockets: its name is nobody else's, so neither are theirs. The path of a socket has to fit into 107 bytes. */
export function makeSocketFolder(): string {
  if (folders.size === 0) process.once('exit', removeAll)
  const folder = mkdtempSync(join(tmpdir().length > 60 ? '/tmp' : tmpdir(), 'trilithon-env-'))
  folders.add(folder)
  return folder
}

export function removeSocketFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  folders.delete(folder)
  if (folders.size === 0) process.off('exit', removeAll)
}

function removeAll(): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
}
