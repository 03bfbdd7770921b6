import { join } from 'node:path'
import type { Sample } from '@trilithon/core'
import { createRolloutReceiver, createRolloutSender, createWeightsPublisher, versionFolder, watchVersions } from '@trilithon/transport'
import type { OrchestratorParts } from '../run/orchestrator-parts.ts'

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
}

export type CreateMatrixTrainer = (options: MatrixTrainerOptions) => MatrixTrainer

/** The transport of files between orchestrator and trainer. */
export const fileTransport = (folder: string): Pick<OrchestratorParts, 'sender' | 'watchVersions' | 'folderOf'> => ({
  sender: createRolloutSender(join(folder, 'rollouts')),
  watchVersions: (onVersion, options) => watchVersions(join(folder, 'broadcasts'), onVersion, options),
  folderOf: (version) => versionFolder(join(folder, 'broadcasts'), version),
})

/** A trainer that learns nothing: real files, one weight that is the version. */
export const fakeFileTrainer: CreateMatrixTrainer = ({ folder, firstStep, maxSteps }) => {
  const trained: { step: number; samples: readonly Sample[] }[] = []
  return {
    trained,
    async run(signal) {
      const publisher = createWeightsPublisher({
        broadcasts: join(folder, 'broadcasts'),
        ...{ profile: 'fp32', tensors: [{ name: 'w', dtype: 'F32', shape: [1] }], memoryBacked: 'never', keep: 2, discardFrom: firstStep },
      })
      try {
        const publish = (version: number) => publisher.publish(version, (_, __, into) => into.fill(version))
        if (firstStep > 0) await publish(firstStep)
        const receiver = createRolloutReceiver(join(folder, 'rollouts'), firstStep)
        for (let step = firstStep; step < maxSteps && !signal.aborted; step++) {
          const batch = await receiver.next(signal)
          if (batch.step !== step) throw new Error(`batch ${batch.step} came for step ${step}`)
          trained.push(batch)
          await publish(step + 1)
        }
      } catch (error) {
        if (!signal.aborted) throw error
      } finally {
        publisher.dispose()
      }
    },
  }
}
