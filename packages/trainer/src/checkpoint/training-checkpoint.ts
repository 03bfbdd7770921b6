import { dirname, join } from 'node:path'
import { type FileLayer, TrilithonError } from '@trilithon/core'
import { checkpointWriteFailure, openCheckpoint, type WeightSpec, writeCheckpoint } from '@trilithon/models'
import { z } from 'zod'

/** A tensor of the training state: a master weight or a state of the optimiser. Elements are float32. */
export interface StateTensor {
  readonly name: string
  readonly shape: readonly number[]
}

/** Everything beside the tensors that decides how a run goes on. JSON; the trainer's parts own what they put in. */
export const TrainingProgress = z.strictObject({
  /** Optimiser steps that the weights have behind them. */
  step: z.int().nonnegative(),
  profile: z.string(),
  /** Where the data goes on, as its source wrote it. */
  data: z.json(),
  /** Seeds and counters of everything random. */
  random: z.json(),
  /** Samples and tokens that were trained, and whatever else is only reported. */
  totals: z.record(z.string(), z.number()),
  /** How the model was split; another plan may load it. */
  plan: z.json(),
})
export type TrainingProgress = z.infer<typeof TrainingProgress>

export interface CheckpointFolder {
  /** Holds `step_N` folders. */
  readonly root: string
  /** Folder inside them, where others have theirs beside it; by default the step's folder itself. */
  readonly part?: string
  readonly files: FileLayer
}

export interface KeepRules {
  /** The newest ones, by number; null keeps all. */
  readonly keepLast: number | null
  /** Besides, those whose step is a multiple. */
  readonly keepInterval: number | null
}

/** Written last inside a folder that was complete when it got its name; its absence says that a copy was cut short. */
const marker = 'COMPLETE'

/**
 * Saves a training state as `step_N`: aside, marker last, renamed. Until then earlier checkpoints are untouched; afterwards those that the rules do
 * not keep are removed. `give` fills `into` with the elements of a tensor from `first` on. Returns its folder.
 *
 * A checkpoint of the same step is kept as it is: it holds the same bits. Throws `CHECKPOINT_WRITE_FAILED`.
 */
export function saveTrainingCheckpoint(
  folder: CheckpointFolder,
  tensors: readonly StateTensor[],
  give: (name: string, first: number, into: Float32Array) => void,
  progress: TrainingProgress,
  keep: KeepRules,
): string {
  const { root, files } = folder
  const path = stepFolder(folder, progress.step)
  try {
    if (!isComplete(path, files)) {
      // What has no marker was never a checkpoint.
      files.remove(path)
      files.makeFolder(dirname(path))
      writeCheckpoint(path, tensors.map(asSpec), (spec, first, into) => give(spec.name, first, into), {
        files,
        dtype: 'F32',
        documents: { 'progress.json': `${JSON.stringify(progress, null, 2)}\n`, [marker]: '' },
      })
    }
    const steps = listTrainingCheckpoints(folder)
    const kept = keptSteps(steps, keep)
    for (const step of steps) if (!kept.has(step)) files.remove(join(root, `step_${step}`))
    return path
  } catch (cause) {
    if (TrilithonError.is(cause)) throw cause
    throw checkpointWriteFailure(path, root, cause)
  }
}

/** Steps of the complete checkpoints, rising. */
export function listTrainingCheckpoints(folder: CheckpointFolder): number[] {
  const { root, files } = folder
  if (!files.exists(root)) return []
  const steps = files.list(root).flatMap((name) => (/^step_\d+$/.test(name) ? [Number(name.slice(5))] : []))
  return steps.filter((step) => isComplete(stepFolder(folder, step), files)).sort((a, b) => a - b)
}

/** The union of the newest `keepLast` and of the multiples of `keepInterval`; the newest always stays. */
export function keptSteps(steps: readonly number[], { keepLast, keepInterval }: KeepRules): ReadonlySet<number> {
  if (keepLast === null && keepInterval === null) return new Set(steps)
  const last = steps.slice(-Math.max(1, keepLast ?? 1))
  const spaced = keepInterval === null ? [] : steps.filter((step) => step % keepInterval === 0)
  return new Set([...last, ...spaced])
}

/**
 * Loads the checkpoint of `step`, or the newest one for -1, into the given tensors. `take` receives pieces that are only valid during the call.
 * Tensors that the checkpoint lacks or has besides are listed in one `CHECKPOINT_INVALID`; those that are left out may be there or not.
 */
export function loadTrainingCheckpoint(
  folder: CheckpointFolder,
  step: number,
  tensors: readonly StateTensor[],
  take: (name: string, first: number, values: Float32Array) => void,
  isLeftOut: (name: string) => boolean = () => false,
): TrainingProgress {
  const { root, files } = folder
  const steps = listTrainingCheckpoints(folder)
  const chosen = step === -1 ? steps.at(-1) : steps.find((one) => one === step)
  if (chosen === undefined) {
    throw new TrilithonError(
      'CHECKPOINT_INVALID',
      step === -1 ? `${root} holds no complete checkpoint` : `${root} holds no complete checkpoint of step ${step}`,
      {
        path: root,
        hint: steps.length === 0 ? 'Start without resuming.' : `Steps that can be resumed from: ${steps.join(', ')}.`,
      },
    )
  }
  const path = stepFolder(folder, chosen)
  const progress = readProgress(join(path, 'progress.json'), files)
  const checkpoint = openCheckpoint(path, files)
  try {
    const faults: string[] = []
    const names = new Set(tensors.map(({ name }) => name))
    for (const { name, shape } of tensors) {
      const found = checkpoint.tensors.get(name)
      if (found === undefined) faults.push(`${name} is missing`)
      else if (found.shape.join() !== shape.join())
        faults.push(`${name} has shape [${found.shape.join(', ')}], the run wants [${shape.join(', ')}]`)
    }
    for (const name of checkpoint.tensors.keys()) if (!names.has(name) && !isLeftOut(name)) faults.push(`${name} is not part of the run`)
    if (faults.length > 0) {
      throw new TrilithonError(
        'CHECKPOINT_INVALID',
        `${path} does not fit the run: ${faults.slice(0, 8).join('; ')}${faults.length > 8 ? `; and ${faults.length - 8} more` : ''}`,
        {
          path,
          hint: 'Resume with the model and the optimiser that the checkpoint was written with.',
          details: { faults },
        },
      )
    }
    for (const { name } of tensors) checkpoint.read(name, (values, first) => take(name, first, values))
  } finally {
    checkpoint.close()
  }
  return progress
}

function stepFolder({ root, part = '' }: CheckpointFolder, step: number): string {
  return join(root, `step_${step}`, part)
}

function isComplete(path: string, files: FileLayer): boolean {
  return files.exists(join(path, marker))
}

function asSpec({ name, shape }: StateTensor): WeightSpec {
  return {
    name,
    shape,
    kind: 'dense',
    unit: '',
    parts: [{ name, shape, offset: 0 }],
    init: { kind: 'constant', value: 0 },
    trained: 'never',
  }
}

function readProgress(path: string, files: FileLayer): TrainingProgress {
  const file = files.open(path, 'r')
  try {
    const bytes = new Uint8Array(file.size)
    file.read(bytes, 0)
    return TrainingProgress.parse(JSON.parse(new TextDecoder().decode(bytes)))
  } catch (cause) {
    throw new TrilithonError('CHECKPOINT_INVALID', `${path} is no progress of a training run`, {
      path,
      hint: 'Resume from another step.',
      cause,
    })
  } finally {
    file.close()
  }
}
