import type { TensorHandle } from '../tensor-types.ts';
export interface MoeCombineForwardArgs {
    /** [rows, width], f32 or f64. */
    readonly x: TensorHandle;
    /** [tokens, top_k], i32. */
    readonly slotRow: TensorHandle;
    /** [tokens, top_k], f32 or f64. */
    readonly weights: TensorHandle;
    /** Read and written. [tokens, width], f32 or f64. */
    readonly y: TensorHandle;
    readonly accumulate: boolean;
}
/** y[t] = sum over slots j of weights[t, j] * x[slot_row[t, j]]; accumulate adds to y. */
export declare function moeCombineForward(args: MoeCombineForwardArgs): void;
export interface MoeCombineBackwardArgs {
    /** [tokens, width], f32 or f64. */
    readonly dY: TensorHandle;
    /** [tokens * top_k, width], f32 or f64. */
    readonly x: TensorHandle;
    /** [tokens, top_k], i32. */
    readonly slotRow: TensorHandle;
    /** [tokens, top_k], f32 or f64. */
    readonly weights: TensorHandle;
    /** Written. [tokens * top_k, width], f32 or f64. */
    readonly dX: TensorHandle;
    /** Written. [tokens, top_k], f32 or f64. */
    readonly dWeights: TensorHandle;
}
/** Gradients of the experts' rows and of the weights. */
export declare function moeCombineBackward(args: MoeCombineBackwardArgs): void;
//# sourceMappingURL=moe-combine.d.ts.map