import type { TensorHandle } from '../tensor-types.ts';
export interface GlobalNormSquareSumArgs {
    /** any shape, f32 or f64. */
    readonly x: TensorHandle;
    /** Read and written. [slots, 2], f64. */
    readonly sums: TensorHandle;
    readonly slot: number;
}
/** sums[slot] = (sum of squares of x, number of its elements that are NaN or infinite). */
export declare function globalNormSquareSum(args: GlobalNormSquareSumArgs): void;
export interface GlobalNormFinishArgs {
    /** [slots, 2], f64. */
    readonly sums: TensorHandle;
    /** Written. [3], f64. */
    readonly result: TensorHandle;
    readonly maxNorm: number;
}
/** result = (norm of all slots, factor that brings it to max_norm or 1, number of elements that are NaN or infinite). */
export declare function globalNormFinish(args: GlobalNormFinishArgs): void;
//# sourceMappingURL=global-norm.d.ts.map