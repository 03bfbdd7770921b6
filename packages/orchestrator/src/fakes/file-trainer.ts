import { join } from 'node:path'
import type { RolloutTransport, Sample } from '@trilithon/core'
import {
  createWeightsPublisher,
  holdVersion,
  openRolloutReceiver,
  type RolloutSender,
  versionFolder,
  watchVersions,
} from '@trilithon/transport'
import type { OrchestratorParts } from '../run/orchestrator-parts.ts'
import { VersionHolds } from '../updates/version-holds.ts'

/** What a trainer is to the boundary matrix: it takes batches from the run folder, trains, and publishes versions there. The real one is put in its place. */
export interface MatrixTrainer {
  /** Trains until the last step, or until the signal; resolves then. */
  run(signal: AbortSignal): Promise<void>
  readonly trained: readonly { readonly step: number; readonly samples: readonly Sample[] }[]
}

export interface MatrixTrainerOptions {
  /** Of the whole run. */
  readonly run: string
  /** The orchestrator's, inside it. */
  readonly folder: string
  readonly firstStep: number
  readonly maxSteps: number
  /** How batches come. */
  readonly transport: RolloutTransport
}

export type CreateMatrixTrainer = (options: MatrixTrainerOptions) => MatrixTrainer

/** Batches by the sender, weights by files. */
export const matrixTransport = (
  folder: string,
  sender: RolloutSender,
): Pick<OrchestratorParts, 'sender' | 'watchVersions' | 'folderOf' | 'holds'> => ({
  sender,
  watchVersions: (onVersion, options) => watchVersions(join(folder, 'broadcasts'), onVersion, options),
  folderOf: (version) => versionFolder(join(folder, 'broadcasts'), version),
  holds: new VersionHolds((version) => holdVersion(join(folder, 'broadcasts'), version)),
})

export interface FileBatch {
  readonly step: number
  readonly samples: readonly Sample[]
}

/** Takes the batches of a run in order, until the last one or the signal. */
export async function takeBatches(
  { folder, firstStep, maxSteps, transport }: Omit<MatrixTrainerOptions, 'run'>,
  signal: AbortSignal,
  train: (batch: FileBatch) => Promise<void>,
): Promise<void> {
  const receiver = await openRolloutReceiver({ transport, rollouts: join(folder, 'rollouts'), firstStep })
  try {
    for (let step = firstStep; step < maxSteps && !signal.aborted; step++) await train(await receiver.next(signal))
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    await receiver.dispose()
  }
}

/** A trainer that learns nothing: real files, one weight that is the version. */
export const fakeFileTrainer: CreateMatrixTrainer = (options) => {
  const { folder, firstStep } = options
  const trained: FileBatch[] = []
  return {
    trained,
    async run(signal) {
      const publisher = createWeightsPublisher({
        broadcasts: join(folder, 'broadcasts'),
        ...{ profile: 'fp32', tensors: [{ name: 'w', dtype: 'F32', shape: [1] }], memoryBacked: 'never', keep: 2, discardFrom: firstStep },
      })
      try {
        const publish = async (version: number) => {
          await publisher.publish(version, (_, __, into) => into.fill(version))
          publisher.collect([])
        }
        if (firstStep > 0) await publish(firstStep)
        await takeBatches(options, signal, async (batch) => {
          trained.push(batch)
          await publish(batch.step + 1)
        })
      } finally {
        publisher.dispose()
      }
    },
  }
}
