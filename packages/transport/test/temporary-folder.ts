import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** In memory where that is to be had: what is tested waits for the disk again and again. */
const parent = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** An empty folder that goes with the test; called in a test or in a hook before each. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(parent, 'trilithon-transport-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
