import { join } from 'node:path'
import type { Sample } from '@trilithon/core'
import { type AsyncFiles, asyncFiles } from '../files/async-files.ts'
import { outputUnusable } from '../files/output-unusable.ts'
import { rolloutsInvalid } from '../msgpack/field-reader.ts'
import { rolloutFiles, rolloutStepFolder } from './rollout-folder.ts'
import { expertRows, trainingBatchChunks } from './training-batch.ts'

export interface RolloutSender {
  /**
   * Ships the batch of a step with what the orchestrator needs to go on after it (JSON). Resolves when all of it is on the disk; until the last rename
   * the step does not exist for a receiver. Where batches go over a socket, it resolves later when too many of them wait for the trainer; a signal ends
   * that waiting, and the batch stays shipped.
   *
   * Rejects with `ROLLOUTS_INVALID` for a step that was shipped, or is being shipped, and for samples that cannot be encoded; with `OUTPUT_UNUSABLE`
   * where the disk is full or the folder not writable. Then nothing of the step remains, and it may be shipped again.
   */
  send(step: number, samples: readonly Sample[], progress: object, signal?: AbortSignal): Promise<void>
  /** Resolves when a trainer can do without this sender: it has all that was shipped, or finds it by itself. Or by the signal. */
  delivered(signal?: AbortSignal): Promise<void>
  /** Gives back what it holds. What was shipped stays. */
  dispose(): Promise<void>
}

/** Ships batches through files below `rollouts`, the orchestrator's folder of that name. */
export function createRolloutSender(rollouts: string, { files = asyncFiles }: { readonly files?: AsyncFiles } = {}): RolloutSender {
  const underWay = new Set<number>()
  return {
    async send(step, samples, progress) {
      const folder = rolloutStepFolder(rollouts, step)
      const batch = join(folder, rolloutFiles.batch)
      if (underWay.has(step)) throw rolloutsInvalid(batch, '', `step ${step} is being shipped`)
      underWay.add(step)
      try {
        if (await files.exists(batch)) throw rolloutsInvalid(batch, '', `step ${step} was shipped already`)
        await ship(folder, step, samples, progress, files)
      } finally {
        underWay.delete(step)
      }
    },
    delivered: async () => undefined,
    dispose: async () => undefined,
  }
}

async function ship(folder: string, step: number, samples: readonly Sample[], progress: object, files: AsyncFiles): Promise<void> {
  const experts = expertRows({ step, samples })
  const parts: readonly (readonly [string, Iterable<Uint8Array>])[] = [
    ...(experts.length > 0 ? [[rolloutFiles.experts, experts] as const] : []),
    [rolloutFiles.progress, [new TextEncoder().encode(`${JSON.stringify(progress)}\n`)]],
    [rolloutFiles.batch, trainingBatchChunks({ step, samples }, 'trilithon')],
  ]
  let current = folder
  try {
    await files.makeFolder(folder)
    // A sender that ended may have left its expert rows, and this step may have none.
    if (experts.length === 0) await files.remove(join(folder, rolloutFiles.experts))
    for (const [name, pieces] of parts) {
      current = join(folder, name)
      await writeFile(`${current}.tmp`, pieces, files)
    }
    for (const [name] of parts) {
      current = join(folder, name)
      await files.rename(`${current}.tmp`, current)
    }
  } catch (cause) {
    const failure = outputUnusable(`${current} could not be written`, folder, cause)
    await removeAll(folder, failure, files)
    throw failure
  }
}

async function writeFile(path: string, pieces: Iterable<Uint8Array>, files: AsyncFiles): Promise<void> {
  const file = await files.open(path, 'w')
  try {
    for (const piece of pieces) await file.write(piece)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Takes away what was begun. Where even that fails, the step still has no batch; the failure that led here is what is reported. */
async function removeAll(folder: string, failure: Error, files: AsyncFiles): Promise<void> {
  try {
    for (const name of Object.values(rolloutFiles).toReversed()) {
      await files.remove(join(folder, name))
      await files.remove(join(folder, `${name}.tmp`))
    }
  } catch (error) {
    failure.message += `; what was begun could not be removed: ${(error as Error).message}`
  }
}
