import type { PolicyVersion } from '@trilithon/core'
import type { EngineAdmin } from '../fleet/engine-admin.ts'

export interface BringEngineOptions {
  readonly admin: EngineAdmin
  readonly engine: string
  readonly version: PolicyVersion
  readonly folderOf: (version: PolicyVersion) => string
  readonly signal: AbortSignal
}

/** Brings one engine, which nobody uses, to a version, and lets it run. One that serves it already may still be paused by an update that it was lost in. */
export async function bringEngine({ admin, engine, version, folderOf, signal }: BringEngineOptions): Promise<void> {
  if ((await admin.version(engine, signal)) === version) return admin.resume(engine, signal)
  const { betweenSteps } = await admin.prepare(engine, version, folderOf(version), signal)
  if (betweenSteps) await admin.exchange(engine, version, signal)
  else {
    await admin.pause(engine, signal)
    try {
      await admin.flip(engine, version, signal)
    } finally {
      await admin.resume(engine, signal)
    }
  }
  await admin.finish(engine, version, signal)
}
