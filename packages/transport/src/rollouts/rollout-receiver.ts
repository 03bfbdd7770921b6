import { join } from 'node:path'
import { type AsyncFiles, asyncFiles } from '../files/async-files.ts'
import { watchFolders } from '../files/folder-watch.ts'
import { readWhole, withFile } from '../files/with-file.ts'
import { rolloutsInvalid } from '../msgpack/field-reader.ts'
import { rolloutFiles, rolloutStepFolder } from './rollout-folder.ts'
import { decodeTrainingBatch, type TrainingBatch } from './training-batch.ts'

export interface RolloutReceiver {
  /**
   * The batch of the next step, once it was shipped. Each step comes once, in order. Rejects with the signal's reason when it is aborted, and with
   * `ROLLOUTS_INVALID` for what cannot be decoded; the step is then still to come. One call at a time.
   */
  next(signal?: AbortSignal): Promise<TrainingBatch>
  /** Gives back what it holds. What was not handed out can be received again by the next receiver. */
  dispose(): Promise<void>
}

/** Receives batches from files below `rollouts`, beginning with `firstStep`. */
export function createRolloutReceiver(
  rollouts: string,
  firstStep: number,
  { files = asyncFiles }: { readonly files?: AsyncFiles } = {},
): RolloutReceiver {
  let step = firstStep
  let isWaiting = false
  return {
    async next(signal) {
      if (isWaiting) throw rolloutsInvalid(rollouts, '', `step ${step} is being waited for already`)
      isWaiting = true
      try {
        const folder = rolloutStepFolder(rollouts, step)
        await shipped(rollouts, folder, files, signal)
        const batch = await readBatch(folder, step, files)
        step += 1
        return batch
      } finally {
        isWaiting = false
      }
    },
    dispose: async () => undefined,
  }
}

async function shipped(rollouts: string, folder: string, files: AsyncFiles, signal: AbortSignal | undefined): Promise<void> {
  const watch = watchFolders([rollouts, folder])
  try {
    signal?.throwIfAborted()
    while (!(await files.exists(join(folder, rolloutFiles.batch)))) await watch.changed(signal)
  } finally {
    watch.close()
  }
}

async function readBatch(folder: string, step: number, files: AsyncFiles): Promise<TrainingBatch> {
  const path = join(folder, rolloutFiles.batch)
  const bytes = await withFile(path, files, readWhole)
  /** Rows are read behind the decoding, each sample's into memory of its own. */
  const stretches: { readonly offset: number; readonly into: Uint8Array }[] = []
  const expertsPath = join(folder, rolloutFiles.experts)
  const expertBytes = (await files.exists(expertsPath)) ? await withFile(expertsPath, files, async ({ size }) => size) : 0
  const batch = decodeTrainingBatch(
    bytes,
    (offset, length) => {
      const into = new Uint8Array(offset + length <= expertBytes ? length : 0)
      stretches.push({ offset, into })
      return into
    },
    path,
  )
  if (batch.step !== step) throw rolloutsInvalid(path, 'step', `is ${batch.step} in the folder of step ${step}`)
  if (stretches.length > 0)
    await withFile(expertsPath, files, async (file) => {
      for (const { offset, into } of stretches) {
        const count = await file.read(into, offset)
        if (count !== into.length) throw rolloutsInvalid(expertsPath, '', `ends ${into.length - count} bytes before its rows do`)
      }
    })
  return batch
}
