import type { TensorHandle } from '../tensor-types.ts';
export interface LmHeadForwardArgs {
    /** [tokens, width], f32 or f64. */
    readonly hidden: TensorHandle;
    /** [vocabulary, width], f32 or f64. */
    readonly weight?: TensorHandle | null | undefined;
    /** [panels of vocabulary, width, 32], f32 or f64. */
    readonly packed?: TensorHandle | null | undefined;
    /** [tokens], i32. */
    readonly targets: TensorHandle;
    /** [tokens], f32 or f64. */
    readonly temperature: TensorHandle;
    /** Written. [tokens], f32 or f64. */
    readonly logprob: TensorHandle;
    /** Written. [tokens], f32 or f64. */
    readonly entropy?: TensorHandle | null | undefined;
    /** Written. [tokens, 2], f32 or f64. */
    readonly stats?: TensorHandle | null | undefined;
    readonly vocabulary: number;
}
/** Log-probability of each row's target under softmax(hidden * transposed(weight) / temperature), and the entropy. */
export declare function lmHeadForward(args: LmHeadForwardArgs): void;
export interface LmHeadBackwardArgs {
    /** [tokens], f32 or f64. */
    readonly dLogprob: TensorHandle;
    /** [tokens, width], f32 or f64. */
    readonly hidden: TensorHandle;
    /** [vocabulary, width], f32 or f64. */
    readonly weight: TensorHandle;
    /** [tokens], i32. */
    readonly targets: TensorHandle;
    /** [tokens], f32 or f64. */
    readonly temperature: TensorHandle;
    /** [tokens, 2], f32 or f64. */
    readonly stats: TensorHandle;
    /** Written. [tokens, width], f32 or f64. */
    readonly dHidden?: TensorHandle | null | undefined;
    /** Read and written. [vocabulary, width], f32 or f64. */
    readonly dWeight?: TensorHandle | null | undefined;
    readonly accumulate: boolean;
}
/** Gradients of hidden and weight from those of the log-probabilities; accumulate adds to d_weight. */
export declare function lmHeadBackward(args: LmHeadBackwardArgs): void;
//# sourceMappingURL=lm-head.d.ts.map