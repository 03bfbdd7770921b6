import { join } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import { checkpointFolder, checkpointSteps, type Progress, parseProgress, readCheckpoint } from './progress.ts'

/** The batches that were shipped, as the transport keeps them. */
export interface ShippedBatches {
  /** The highest step that was shipped, or null. */
  lastShipped(): number | null
  /** Whether that step was shipped. */
  has(step: number): boolean
  /** What was saved beside a shipped step. Throws where it cannot be read. */
  progressOf(step: number): unknown
}

export interface ResumeOptions {
  readonly checkpoints: string
  readonly shipped: ShippedBatches
  /** -1: the last one. */
  readonly resumeStep: number
  /** Steps with a checkpoint of the trainer; the orchestrator's alone where it is elsewhere. */
  readonly trainerSteps?: readonly number[]
}

/**
 * The step that the trainer goes on with, and the progress behind the last batch that was shipped for it or a later step: those batches are trained as they are.
 * Throws `RESUME_IMPOSSIBLE` where the step has no checkpoint.
 */
export function findProgress({ checkpoints, shipped, resumeStep, trainerSteps }: ResumeOptions): {
  readonly step: number
  readonly progress: Progress
} {
  const steps = trainerSteps ?? checkpointSteps(checkpoints)
  const step = resumeStep === -1 ? steps.at(-1) : resumeStep
  if (step === undefined)
    throw new TrilithonError('RESUME_IMPOSSIBLE', `There is no checkpoint in ${checkpoints}`, {
      path: 'ckpt.resume_step',
      hint: 'Remove ckpt.resume_step, or set output_dir to the run to go on with.',
    })
  const last = lastInRow(shipped, step)
  if (last !== undefined)
    return { step, progress: parseProgress(shipped.progressOf(last), join('rollouts', `step_${last}`, 'progress.json')) }
  const progress = readCheckpoint(checkpoints, step)
  if (progress === undefined)
    throw new TrilithonError(
      'RESUME_IMPOSSIBLE',
      `${checkpointFolder(checkpoints, step)} has no progress; there are checkpoints of the orchestrator at steps ${checkpointSteps(checkpoints).join(', ') || 'none'}`,
      { path: 'ckpt.resume_step', hint: 'Resume from one of them.' },
    )
  return { step, progress }
}

/** The last batch of those that follow each other from `step` on; or batch `step - 1`, behind which the orchestrator goes on as well. */
function lastInRow(shipped: ShippedBatches, step: number): number | undefined {
  let last = step - 1
  while (shipped.has(last + 1)) last++
  const newest = shipped.lastShipped()
  if (newest !== null && newest > last)
    throw new TrilithonError('RESUME_IMPOSSIBLE', `batch ${last + 1} is missing, and batch ${newest} was shipped behind it`, {
      path: 'ckpt.resume_step',
      hint: `Resume from a step of which all later batches are there, or remove the folders of batches above ${last}.`,
    })
  return last >= 0 && shipped.has(last) ? last : undefined
}
