import { type FileLayer, TrilithonError } from '@trilithon/core'
import { createRlTrainer, type RlTrainer } from './create-rl-trainer.ts'
import { fakeBatch } from './fake-batches.ts'
import type { RlBatch, RlListener } from './rl-event.ts'
import type { RlSetup } from './rl-setup.ts'

export interface RlRunOptions {
  readonly setup: RlSetup
  /** The batch that the event `waiting` asked for; null when the run shall end. */
  readonly receive: () => Promise<RlBatch | null>
  readonly listener: RlListener
  /** Asked between two steps; the native ops have an abort flag of their own for what is in between. */
  readonly isStopped: () => boolean
  readonly files?: FileLayer
}

/**
 * The trainer's part of a whole run, in the thread that it is called in. Throws what ends it otherwise; whatever happens, no tensor is left behind.
 */
export async function runRlHere({ setup, receive, listener, isStopped, files }: RlRunOptions): Promise<void> {
  let trainer: RlTrainer | undefined
  try {
    trainer = await createRlTrainer({ setup, listener, ...(files === undefined ? {} : { files }) })
    const isInterrupted = await trainAll(trainer, { setup, receive, listener, isStopped })
    trainer.finish(isInterrupted)
  } catch (error) {
    // Loading was cut short: there is nothing to write.
    if (trainer !== undefined || !isAborted(error, isStopped)) throw error
    listener({ kind: 'ended', step: 0, isInterrupted: true })
  } finally {
    trainer?.dispose()
  }
}

/** Whether it ended before its time. */
async function trainAll(
  trainer: RlTrainer,
  { setup, receive, listener, isStopped }: Pick<RlRunOptions, 'setup' | 'receive' | 'listener' | 'isStopped'>,
): Promise<boolean> {
  const { data, model, numerics_profile: profile } = setup.config
  const { fake } = data
  const next = async (step: number): Promise<RlBatch | null> => {
    if (fake !== null)
      return fakeBatch(step, {
        batchSize: fake.batch_size,
        varies: fake.generate_samples,
        seqLen: Math.min(model.seq_len, trainer.model.config.maxPositions),
        vocabSize: trainer.model.config.vocabSize,
        profile,
      })
    listener({ kind: 'waiting', step })
    return receive()
  }
  while (!trainer.isFinished) {
    if (isStopped()) return true
    const asked = performance.now()
    const batch = await next(trainer.version)
    if (batch === null) return true
    listener({ kind: 'training', step: batch.step })
    try {
      await trainer.step({ ...batch, waitedSeconds: (performance.now() - asked) / 1000 })
    } catch (error) {
      // What was under way is dropped: the state is that of the last whole step.
      if (!isAborted(error, isStopped)) throw error
      return true
    }
  }
  return false
}

function isAborted(error: unknown, isStopped: () => boolean): boolean {
  return TrilithonError.is(error, 'NATIVE_ABORTED') && isStopped()
}
