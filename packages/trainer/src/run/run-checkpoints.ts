import { join, resolve } from 'node:path'
import { type FileLayer, TrilithonError } from '@trilithon/core'
import { type Model, saveModel } from '@trilithon/models'
import type { z } from 'zod'
import {
  type CheckpointFolder,
  keptSteps,
  listTrainingCheckpoints,
  loadTrainingCheckpoint,
  saveTrainingCheckpoint,
  type TrainingProgress,
} from '../checkpoint/training-checkpoint.ts'
import type { CheckpointTable } from '../configuration/checkpoint-table.ts'
import { optimiserPrefix, type TrainingState } from './training-state.ts'

export type CheckpointConfiguration = z.output<typeof CheckpointTable>

export interface RunCheckpointsOptions {
  /** null writes none and resumes from none. */
  readonly ckpt: CheckpointConfiguration | null
  readonly profile: string
  readonly folder: CheckpointFolder
  /** Holds `step_N` folders in Hugging Face's format. */
  readonly weights: string
  readonly model: Model
  readonly state: TrainingState
  /** Files beside the weights, by name. */
  readonly documents: Readonly<Record<string, string>>
}

/** What a run was doing beside its tensors. */
export type RunProgress = Pick<TrainingProgress, 'step' | 'data' | 'random' | 'totals'>

/** The checkpoints of a run as its table `ckpt` wants them: to resume from, to go on from, and weights for others. */
export class RunCheckpoints {
  readonly #options: RunCheckpointsOptions
  #resumedStep: number | null = null

  constructor(options: RunCheckpointsOptions) {
    this.#options = options
  }

  /** Restores weights and optimiser; null where the run starts anew. Throws `CHECKPOINT_INVALID`, `OUTPUT_UNUSABLE`. */
  resume(): TrainingProgress | null {
    const { ckpt, folder, state, profile } = this.#options
    if (ckpt === null || ckpt.resume_step === null) return null
    const { resume_step: wanted } = ckpt
    const later = listTrainingCheckpoints(folder).filter((step) => wanted !== -1 && step > wanted)
    if (later.length > 0)
      throw new TrilithonError(
        'OUTPUT_UNUSABLE',
        `${folder.root} has checkpoints behind step ${wanted}: ${later.join(', ')}; this run would come to the same steps again`,
        { path: 'ckpt.resume_step', hint: 'Move those away first, or resume from the last with -1.' },
      )
    const isTaken = (name: string) => !(ckpt.skip_optimizer && name.startsWith(optimiserPrefix))
    const progress = loadTrainingCheckpoint(
      folder,
      wanted,
      state.tensors.filter(({ name }) => isTaken(name)),
      (name, first, values) => state.take(name, first, values),
      (name) => !isTaken(name),
    )
    this.#resumedStep = progress.step
    if (progress.profile === profile) return progress
    throw new TrilithonError(
      'CHECKPOINT_INVALID',
      `the checkpoint was computed under the profile ${progress.profile}, and the run has ${profile}`,
      {
        path: 'numerics_profile',
        hint: `Set numerics_profile = "${progress.profile}".`,
      },
    )
  }

  /** Whether the interval asks for a checkpoint of this step. */
  isDue(step: number): boolean {
    const interval = this.#options.ckpt?.interval ?? null
    return interval !== null && step % interval === 0
  }

  /**
   * Writes what the table asks for and says where; null where it asks for nothing. The training state comes first: weights without one cannot be gone on
   * from. Throws `CHECKPOINT_WRITE_FAILED`; what was there stays.
   */
  save(progress: RunProgress): { readonly path: string; readonly seconds: number } | null {
    const { ckpt, folder, weights, state, profile } = this.#options
    if (ckpt === null) return null
    const begin = performance.now()
    const keep = { keepLast: ckpt.keep_last, keepInterval: ckpt.keep_interval }
    let path = join(weights, `step_${progress.step}`)
    if (!ckpt.weights_only) {
      const whole = { ...progress, profile, plan: { ranks: 1 } }
      path = saveTrainingCheckpoint(folder, state.tensors, (name, first, into) => state.give(name, first, into), whole, keep)
    }
    if (ckpt.weights !== null) {
      this.#saveWeights(progress.step, ckpt.weights.save_sharded)
      pruneWeights(weights, keep, folder.files)
    }
    return { path, seconds: (performance.now() - begin) / 1000 }
  }

  #saveWeights(step: number, isSharded: boolean): void {
    const { weights, model, documents, folder } = this.#options
    const { files } = folder
    const path = join(weights, `step_${step}`)
    // Of the step that the run resumed from they have the same bits. Of a later one they are of a run that was given up, perhaps on other batches.
    if (files.exists(path) && step === this.#resumedStep) return
    files.remove(path)
    files.makeFolder(weights)
    saveModel(model, path, {
      files,
      documents: { ...documents, STABLE: '' },
      ...(isSharded ? {} : { maxShardBytes: Number.MAX_SAFE_INTEGER }),
    })
  }
}

/** Where `checkpoints` and `weights` of a run are. */
export function checkpointRoot(ckpt: CheckpointConfiguration | null, outputFolder: string, workingDirectory: string): string {
  const own = ckpt?.output_dir ?? null
  return own === null ? outputFolder : resolve(workingDirectory, own)
}

function pruneWeights(root: string, keep: { keepLast: number | null; keepInterval: number | null }, files: FileLayer): void {
  const steps = files.list(root).flatMap((name) => (/^step_\d+$/.test(name) ? [Number(name.slice(5))] : []))
  const kept = keptSteps(
    steps.sort((a, b) => a - b),
    keep,
  )
  for (const step of steps) if (!kept.has(step)) files.remove(join(root, `step_${step}`))
}
