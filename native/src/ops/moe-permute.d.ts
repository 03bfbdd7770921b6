import type { TensorHandle } from '../tensor-types.ts';
export interface MoePermutePlanArgs {
    /** [tokens, top_k], i32 or u16 or u8. */
    readonly ids: TensorHandle;
    /** Written. [tokens, top_k], i32. */
    readonly slotRow: TensorHandle;
    /** Written. [experts + 1], i32. */
    readonly offsets: TensorHandle;
}
/** Row of each (token, slot) when all are sorted by expert, in the order of tokens and slots within one; first row of each expert. */
export declare function moePermutePlan(args: MoePermutePlanArgs): void;
export interface MoePermuteForwardArgs {
    /** [tokens, width], f32 or f64. */
    readonly x: TensorHandle;
    /** [tokens, top_k], i32. */
    readonly slotRow: TensorHandle;
    /** Written. [tokens * top_k, width], f32 or f64. */
    readonly y: TensorHandle;
}
/** y[slot_row[t, j]] = x[t] for every slot j. */
export declare function moePermuteForward(args: MoePermuteForwardArgs): void;
export interface MoePermuteBackwardArgs {
    /** [rows, width], f32 or f64. */
    readonly dY: TensorHandle;
    /** [tokens, top_k], i32. */
    readonly slotRow: TensorHandle;
    /** Read and written. [tokens, width], f32 or f64. */
    readonly dX: TensorHandle;
    readonly accumulate: boolean;
}
/** Gradient of x: sum of the rows of d_y of each token, in the order of its slots. */
export declare function moePermuteBackward(args: MoePermuteBackwardArgs): void;
//# sourceMappingURL=moe-permute.d.ts.map