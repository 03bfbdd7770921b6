import type { TensorHandle } from '../tensor-types.ts';
export interface SamplingFromLogitsArgs {
    /** [rows, vocabulary], f32 or f64. */
    readonly logits: TensorHandle;
    /** [rows], f32 or f64. */
    readonly temperature: TensorHandle;
    /** [rows], i32. */
    readonly topK?: TensorHandle | null | undefined;
    /** [rows], f32 or f64. */
    readonly topP?: TensorHandle | null | undefined;
    /** [rows], f32 or f64. */
    readonly minP?: TensorHandle | null | undefined;
    /** [rows], i64. */
    readonly seeds: TensorHandle;
    /** [rows], i32. */
    readonly positions: TensorHandle;
    /** Written. [rows], i32. */
    readonly tokens: TensorHandle;
    /** Written. [rows], f32 or f64. */
    readonly logprob: TensorHandle;
}
/** Chooses a token per row of logits; its log-probability is that of lm-head for the same logits. */
export declare function samplingFromLogits(args: SamplingFromLogitsArgs): void;
export interface SamplingFromHiddenArgs {
    /** [rows, width], f32 or f64. */
    readonly hidden: TensorHandle;
    /** [vocabulary, width], f32 or f64. */
    readonly weight?: TensorHandle | null | undefined;
    /** [panels of vocabulary, width, 32], f32 or f64. */
    readonly packed?: TensorHandle | null | undefined;
    /** [rows], f32 or f64. */
    readonly temperature: TensorHandle;
    /** [rows], i32. */
    readonly topK?: TensorHandle | null | undefined;
    /** [rows], f32 or f64. */
    readonly topP?: TensorHandle | null | undefined;
    /** [rows], f32 or f64. */
    readonly minP?: TensorHandle | null | undefined;
    /** [rows], i64. */
    readonly seeds: TensorHandle;
    /** [rows], i32. */
    readonly positions: TensorHandle;
    /** Written. [rows], i32. */
    readonly tokens: TensorHandle;
    /** Written. [rows], f32 or f64. */
    readonly logprob: TensorHandle;
    readonly vocabulary: number;
}
/** Chooses a token per hidden row from hidden * transposed(weight), without storing all logits. */
export declare function samplingFromHidden(args: SamplingFromHiddenArgs): void;
//# sourceMappingURL=sampling.d.ts.map