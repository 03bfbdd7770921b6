import { join } from 'node:path'
import type { FileLayer, MicroBatch } from '@trilithon/core'
import { checkpointWriteFailure } from '@trilithon/models'

/** A sample of a step that was skipped, as it is saved: one line of JSON. */
export interface BadSample {
  readonly id: string
  readonly environment: string
  readonly reward: number | null
  readonly ids: readonly number[]
  readonly mask: readonly number[]
  readonly advantages: readonly number[]
  readonly logprobs: readonly number[]
  readonly temperatures: readonly number[]
}

/** The samples of a micro-batch that are asked for; padding is none. */
export function samplesOf(batch: MicroBatch, isAsked: (id: string) => boolean): BadSample[] {
  const samples: BadSample[] = []
  let begin = 0
  for (const [index, length] of batch.sequenceLengths.entries()) {
    const id = batch.sampleIds[index] ?? ''
    const cut = (values: ArrayLike<number>) => Array.from({ length }, (_, token) => values[begin + token] ?? 0)
    if (id !== '' && isAsked(id))
      samples.push({
        id,
        environment: batch.environments[index] ?? '',
        reward: batch.rewards[index] ?? null,
        ids: cut(batch.inputIds),
        mask: cut(batch.mask),
        advantages: cut(batch.advantages),
        logprobs: cut(batch.logprobs),
        temperatures: cut(batch.temperatures),
      })
    begin += length
  }
  return samples
}

/**
 * Writes the samples of a skipped step to `skipped/step_N.jsonl` below the run's folder, and says where. Throws
 * `CHECKPOINT_WRITE_FAILED`.
 */
export function saveSkippedSamples(files: FileLayer, folder: string, step: number, reason: string, samples: readonly BadSample[]): string {
  const path = join(folder, 'skipped', `step_${step}.jsonl`)
  // NaN has no JSON; as text it stays visible.
  const line = (sample: BadSample) =>
    JSON.stringify({ reason, ...sample }, (_, value) => (typeof value === 'number' && !Number.isFinite(value) ? String(value) : value))
  try {
    files.makeFolder(join(folder, 'skipped'))
    const file = files.open(path, 'w')
    try {
      file.write(new TextEncoder().encode(samples.map((sample) => `${line(sample)}\n`).join('')))
      file.sync()
    } finally {
      file.close()
    }
  } catch (cause) {
    throw checkpointWriteFailure(path, folder, cause)
  }
  return path
}
