import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** An empty folder that goes with the test; called in a test or in a hook before each. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'trilithon-transport-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
