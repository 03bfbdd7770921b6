import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolloutsInvalid } from '../msgpack/field-reader.ts'

/** Folder of a step below the orchestrator's `rollouts` folder. */
export const rolloutStepFolder = (rollouts: string, step: number): string => join(rollouts, `step_${step}`)

/** Files of a step, in the order in which they get their names; the last one makes the step a shipped one. */
export const rolloutFiles = { experts: 'train_rollouts.experts.bin', progress: 'progress.json', batch: 'train_rollouts.bin' } as const

/** The highest step that was shipped, or null. `rollouts` need not exist. */
export function lastShippedStep(rollouts: string): number | null {
  const steps = namesIn(rollouts).flatMap((name) => (/^step_\d+$/.test(name) ? [Number(name.slice('step_'.length))] : []))
  const shipped = steps.sort((a, b) => b - a).find((step) => namesIn(rolloutStepFolder(rollouts, step)).includes(rolloutFiles.batch))
  return shipped ?? null
}

/** What the orchestrator wrote beside a step that was shipped. Throws `ROLLOUTS_INVALID` where that is not there or no JSON object. */
export function readProgress(rollouts: string, step: number): Record<string, unknown> {
  const path = join(rolloutStepFolder(rollouts, step), rolloutFiles.progress)
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw rolloutsInvalid(path, '', `cannot be read: ${(cause as Error).message}`, cause)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw rolloutsInvalid(path, '', 'is not an object')
  return value as Record<string, unknown>
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    // Nothing was shipped yet, or the step was removed meanwhile.
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    throw error
  }
}
