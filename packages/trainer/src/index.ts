/**
 * The trainer: the configuration of the roots `trainer` and `sft`, data, packing and losses. Importing it has no effect.
 *
 * @module
 */
export * from './configuration/index.ts'
export { createDataLoader, type DataBatch, type DataLoader, type DataLoaderOptions } from './data/data-loader.ts'
export type { Document } from './data/document.ts'
export { type DataPosition, type DocumentSource, dataStart } from './data/document-source.ts'
export { createFakeDocuments, type FakeDocumentsOptions } from './data/fake-documents.ts'
export type { RowPlace, RowSource } from './data/row-source.ts'
export { openRows } from './data/rows.ts'
export { createTextDocuments, type TextDocumentsOptions } from './data/text-documents.ts'
export { createLosses, type LossChoice } from './loss/create-losses.ts'
export type { CustomLoss } from './loss/custom-loss.ts'
export type { Loss, LossInputs, SequenceLoss } from './loss/loss.ts'
export { LossMetrics, type Statistics, summarise } from './loss/loss-metrics.ts'
export { countLossTokens, lossDenominator, type MicroBatchLoss, microBatchLoss, type SequenceReport } from './loss/micro-batch-loss.ts'
export { createDefaultLoss, createIpoLoss, mismatchKl, opdLoss, sftLoss } from './loss/policy-loss.ts'
export { type CostCoefficients, packingCost, tokenCost } from './packing/packing-cost.ts'
export { type PrepareBatchOptions, prepareBatch } from './packing/prepare-batch.ts'
export type { SftSetup } from './sft/sft-run.ts'
export { prepareSft, runSft, type SftPlanOptions, type SftStartOptions } from './sft/start-sft.ts'
export { createOptimiser } from './step/create-optimiser.ts'
export { learningRate, type Scheduler } from './step/learning-rate.ts'
export { type BadSample, saveSkippedSamples } from './step/skipped-samples.ts'
export { scoreMicroBatch, type TrainStepParts, type TrainStepReport, type TrainStepRequest, trainStep } from './step/train-step.ts'
