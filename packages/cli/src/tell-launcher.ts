import type { TrilithonError } from '@trilithon/core'
import { launchingParent, type PlainError, type RoleEvent } from '@trilithon/monitor'

/** Says to the launcher, where one has started this process, what a role fails with: also what went wrong before the role could. Resolves when it was sent. */
export async function tellLauncher(role: string, error: TrilithonError): Promise<void> {
  const parent = launchingParent()
  if (parent === null || !parent.connected) return
  const event: RoleEvent = { kind: 'failed', role, error: error.toJSON() as unknown as PlainError }
  await new Promise<void>((resolve) => parent.send?.(event, () => resolve()))
}
