import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { TrilithonError } from '@trilithon/core'

export interface ResumeFolders {
  /** Holds `step_N/trainer`. */
  readonly trainer: string
  /** Folder of the orchestrator: holds `checkpoints/step_N/orchestrator` and `rollouts/step_N`. */
  readonly orchestrator: string
}

export interface ResumeStep {
  readonly step: number
  /** Folders of the trainer for later steps that the orchestrator does not have. */
  readonly unpaired: readonly string[]
}

/**
 * The one step that both trainer and orchestrator can go on from: the last such for -1. The orchestrator can where it has a checkpoint, and behind every batch that
 * was shipped, whose progress lies beside it: a trainer that was interrupted has a checkpoint of a step of its own. Throws `RESUME_IMPOSSIBLE` with what was
 * found, also where the trainer has checkpoints behind a step that was asked for by its number.
 */
export function resolveResumeStep(wanted: number, folders: ResumeFolders): ResumeStep {
  const trainer = stepsOf(folders.trainer, join('trainer', 'COMPLETE'))
  const saved = stepsOf(join(folders.orchestrator, 'checkpoints'), join('orchestrator', 'progress.json'))
  const shipped = stepsOf(join(folders.orchestrator, 'rollouts'), 'train_rollouts.bin').map((step) => step + 1)
  const orchestrator = [...new Set([...saved, ...shipped])].sort((a, b) => a - b)
  const both = trainer.filter((step) => orchestrator.includes(step))
  const step = wanted === -1 ? both.at(-1) : both.find((one) => one === wanted)
  if (step === undefined) {
    const list = (steps: readonly number[]) => (steps.length === 0 ? 'none' : steps.join(', '))
    throw new TrilithonError(
      'RESUME_IMPOSSIBLE',
      `there is no checkpoint of ${wanted === -1 ? 'any step' : `step ${wanted}`} of both trainer and orchestrator; found: trainer ${list(trainer)} in ${folders.trainer}, orchestrator ${list(orchestrator)} in ${folders.orchestrator}`,
      {
        path: 'ckpt.resume_step',
        hint: both.length === 0 ? 'Remove ckpt.resume_step to start anew.' : `Resume from one of: ${both.join(', ')}.`,
        details: { trainer, orchestrator },
      },
    )
  }
  const later = trainer.filter((one) => one > step)
  // Nobody has said that those are to be given up.
  if (wanted !== -1 && later.length > 0)
    throw new TrilithonError(
      'RESUME_IMPOSSIBLE',
      `${folders.trainer} has checkpoints behind step ${step}: ${later.join(', ')}; this run would come to the same steps again`,
      { path: 'ckpt.resume_step', hint: 'Move those away first, or resume from the last with -1.', details: { later } },
    )
  return { step, unpaired: later.map((one) => join(folders.trainer, `step_${one}`)) }
}

function stepsOf(folder: string, mark: string): number[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .flatMap((name) => (/^step_\d+$/.test(name) && existsSync(join(folder, name, mark)) ? [Number(name.slice(5))] : []))
    .sort((a, b) => a - b)
}
