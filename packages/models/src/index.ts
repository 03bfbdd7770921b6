/**
 * Model families and their checkpoints. Importing it has no effect.
 *
 * @module
 */
export { type LoadReport, loadWeights } from './checkpoint/load-weights.ts'
export { type Checkpoint, openCheckpoint } from './checkpoint/open-checkpoint.ts'
export { checkpointWriteFailure, type WriteCheckpointOptions, writeCheckpoint } from './checkpoint/write-checkpoint.ts'
export type { CommonConfig } from './config/common-keys.ts'
export type { ModelConfig, ModelFamily } from './config/model-config.ts'
export { parseModelConfig } from './config/parse-model-config.ts'
export type { RopeConfig } from './config/rope-config.ts'
export type { AttendedRows, ContextBackend } from './context/context-backend.ts'
export { type KVComponent, KVPages, kvComponents, kvElementsPerToken, kvFormat } from './context/kv-pages.ts'
export { createPackedContext, type PackedContext } from './context/packed-context.ts'
export { createPagedContext, type PagedRows, type PagedSequence, pagedContextOf } from './context/paged-context.ts'
export type { GlmMoeDsaConfig, IndexerConfig } from './families/glm-moe-dsa/config.ts'
export type { GroupedAttentionConfig, Qwen3Config } from './families/qwen3/config.ts'
export type { ExpertsConfig, Qwen3MoeConfig } from './families/qwen3-moe/config.ts'
export { nodeFiles } from './files/node-files.ts'
export { resolveModelFolder } from './files/resolve-model-folder.ts'
export type { Projection } from './layers/projection.ts'
export * from './model/create-model.ts'
export { type ForwardOptions, type ForwardResult, Model, type ModelOptions, type ScoreOptions } from './model/model.ts'
export { isIgnoredTensor, modelWeights } from './model-weights.ts'
export { activeMatmulWeights, type TrainingFlopsOptions, trainingFlops } from './training-flops.ts'
export { countParameters, elementsOf, type StoredPart, type WeightInit, type WeightSpec } from './weight-spec.ts'
