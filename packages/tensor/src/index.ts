/**
 * Tensors by handle, scopes that free them, a tape that differentiates through them, parameters and optimisers: all over `@trilithon/native`.
 * Importing it has no effect.
 *
 * @module
 */
export type { BackwardStep } from './backward-step.ts'
export { checkGradient, type GradientCheckOptions, type GradientReport } from './check-gradient.ts'
export { checkpoint } from './checkpoint.ts'
export * from './collect-parameters.ts'
export * from './hooks/expert-exchange.ts'
export * from './hooks/parameter-gathering.ts'
export * from './hooks/quantiser.ts'
export * from './hooks/sequence-gathering.ts'
export * from './ops/attention.ts'
export * from './ops/block-hash.ts'
export { type BlockCodes, dequantiseBlocks, narrow, type QuantiseOptions, quantiseBlocks, type SmallFormat, widen } from './ops/casts.ts'
export * from './ops/dsa-indexer.ts'
export { type ElementaryFunction, elementary } from './ops/elementary.ts'
export * from './ops/embedding.ts'
export * from './ops/expert-linear.ts'
export * from './ops/indexer-kl.ts'
export * from './ops/kv-blocks.ts'
export * from './ops/layer-norm.ts'
export * from './ops/linear.ts'
export * from './ops/lm-head.ts'
export * from './ops/matmul.ts'
export * from './ops/mla-attention.ts'
export * from './ops/moe-permute.ts'
export * from './ops/moe-router.ts'
export { type PackedWeight, packWeight } from './ops/packed-weight.ts'
export * from './ops/pointwise.ts'
export * from './ops/rms-norm.ts'
export * from './ops/rope.ts'
export * from './ops/sampling.ts'
export {
  documentPositions,
  type PackedSequences,
  type PagedSequences,
  packDocuments,
  type QueryChunks,
} from './ops/sequences.ts'
export * from './ops/swiglu.ts'
export * from './ops/views.ts'
export * from './optimisers/adamw.ts'
export * from './optimisers/gradient-norm.ts'
export * from './optimisers/muon.ts'
export type { Optimiser, OptimiserState, OptimiserStep, Trainable } from './optimisers/optimiser.ts'
export * from './optimisers/sgd.ts'
export * from './optimisers/zero-gradients.ts'
export * from './parameter.ts'
export { CounterRandom } from './random/counter-random.ts'
export * from './random/initialiser.ts'
export { keep, scope } from './scope.ts'
export { activeTape, type BackwardSeed, detach, noGrad, record, recorder, refuseRecording, Tape } from './tape.ts'
export * from './tensor.ts'
