/**
 * Rollouts, micro-batches and weights between the roles of a run, through files. Importing it has no effect.
 *
 * @module
 */
export { type AsyncFile, type AsyncFiles, asyncFiles } from './files/async-files.ts'
export { type TransportFiles, transportFiles } from './files/transport-files.ts'
export { decodeMicroBatches, encodeMicroBatches } from './rollouts/micro-batches.ts'
export { type OpenRolloutsOptions, openRolloutReceiver, openRolloutSender } from './rollouts/open-rollouts.ts'
export { lastShippedStep, readProgress, rolloutFiles, rolloutStepFolder } from './rollouts/rollout-folder.ts'
export { createRolloutReceiver, type RolloutReceiver } from './rollouts/rollout-receiver.ts'
export { createRolloutSender, type RolloutSender } from './rollouts/rollout-sender.ts'
export { decodeTrainingBatch, type EncodedBatch, encodeTrainingBatch, type TrainingBatch } from './rollouts/training-batch.ts'
export { type ExpertRows, unknownVersion, type WireLayout } from './rollouts/wire-fields.ts'
export { type OpenWeights, openWeights } from './weights/open-weights.ts'
export type { ReaderLease } from './weights/reader-lease.ts'
export type { ServingDtype } from './weights/serving-dtype.ts'
export { holdVersion, isStable, latestVersion, type WatchVersionsOptions, watchVersions } from './weights/versions.ts'
export { type ServingTensor, type TensorToServe, versionFolder, type WeightsManifest } from './weights/weights-manifest.ts'
export {
  createWeightsPublisher,
  type FillTensor,
  type PublishedWeights,
  type WeightsPublisher,
  type WeightsPublisherOptions,
} from './weights/weights-publisher.ts'
