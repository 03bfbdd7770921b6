import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { z } from 'zod'
import { ConcurrencyPosition } from '../concurrency/adaptive-concurrency.ts'
import { SourcePosition } from '../source/task-source.ts'

/** All that the orchestrator needs to go on: written beside each shipped batch, and into checkpoints. */
export const Progress = z.strictObject({
  format: z.literal(1),
  /** The next batch. */
  step: z.int().min(0),
  total_tokens: z.int().min(0),
  total_samples: z.int().min(0),
  total_problems: z.int().min(0),
  /** Number of the next group; ids of samples begin with it, so they are unique over resumes. */
  next_group: z.int().min(0),
  source: SourcePosition,
  /** Of a run whose concurrency adapts. */
  concurrency: ConcurrencyPosition.optional(),
})
export type Progress = z.output<typeof Progress>

/** Throws `RESUME_IMPOSSIBLE` for what is no progress. */
export function parseProgress(value: unknown, path: string): Progress {
  const parsed = Progress.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new TrilithonError('RESUME_IMPOSSIBLE', `${path} is no progress of an orchestrator: ${issue?.path.join('.')} ${issue?.message}`, {
    path,
    hint: 'Resume from an earlier step, or start a new run.',
    cause: parsed.error,
  })
}

const fileName = 'progress.json'

/** Folder of the orchestrator's part of a checkpoint. */
export const checkpointFolder = (checkpoints: string, step: number): string => join(checkpoints, `step_${step}`, 'orchestrator')

/** Written aside and renamed. Throws `CHECKPOINT_WRITE_FAILED`. */
export function writeCheckpoint(checkpoints: string, progress: Progress): void {
  const folder = checkpointFolder(checkpoints, progress.step)
  const path = join(folder, fileName)
  try {
    mkdirSync(folder, { recursive: true })
    writeFileSync(`${path}.tmp`, `${JSON.stringify(progress)}\n`)
    renameSync(`${path}.tmp`, path)
  } catch (cause) {
    throw new TrilithonError('CHECKPOINT_WRITE_FAILED', `${path} could not be written: ${(cause as Error).message}`, {
      path,
      hint: 'Make room on the disk, and resume from the checkpoint before.',
      cause,
    })
  }
}

/** Steps with a checkpoint, ascending. */
export function checkpointSteps(checkpoints: string): number[] {
  return names(checkpoints)
    .flatMap((name) => (/^step_\d+$/.test(name) ? [Number(name.slice(5))] : []))
    .filter((step) => names(checkpointFolder(checkpoints, step)).includes(fileName))
    .sort((one, other) => one - other)
}

/** Undefined where there is none. */
export function readCheckpoint(checkpoints: string, step: number): Progress | undefined {
  const folder = checkpointFolder(checkpoints, step)
  if (!names(folder).includes(fileName)) return undefined
  const path = join(folder, fileName)
  let value: unknown
  try {
    value = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    value = (error as Error).message
  }
  return parseProgress(value, path)
}

/** Removes checkpoints beyond the newest `keepLast`, but for every `keepInterval`-th step. null keeps all. */
export function pruneCheckpoints(checkpoints: string, keepLast: number | null, keepInterval: number | null): void {
  if (keepLast === null) return
  for (const step of checkpointSteps(checkpoints).slice(0, -keepLast)) {
    if (keepInterval !== null && step % keepInterval === 0) continue
    const folder = join(checkpoints, `step_${step}`)
    rmSync(join(folder, 'orchestrator'), { recursive: true, force: true })
    if (names(folder).length === 0) rmSync(folder, { recursive: true, force: true })
  }
}

function names(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return []
    throw error
  }
}
