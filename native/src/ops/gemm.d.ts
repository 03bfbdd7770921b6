import type { TensorHandle } from '../tensor-types.ts';
export interface GemmForwardArgs {
    /** [tokens, k], f32 or f64. */
    readonly x: TensorHandle;
    /** [n, k], f32 or f64. */
    readonly weight?: TensorHandle | null | undefined;
    /** [panels of n, k, 32], f32 or f64. */
    readonly packed?: TensorHandle | null | undefined;
    /** [n], f32 or f64. */
    readonly bias?: TensorHandle | null | undefined;
    /** Read and written. [tokens, n], f32 or f64. */
    readonly y: TensorHandle;
    readonly accumulate: boolean;
}
/** y = x * transposed(weight) + bias, or y + that when accumulate is set; weight as it is or packed. */
export declare function gemmForward(args: GemmForwardArgs): void;
export interface GemmBackwardXArgs {
    /** [tokens, n], f32 or f64. */
    readonly dY: TensorHandle;
    /** [n, k], f32 or f64. */
    readonly weight?: TensorHandle | null | undefined;
    /** [panels of k, n, 32], f32 or f64. */
    readonly packed?: TensorHandle | null | undefined;
    /** Read and written. [tokens, k], f32 or f64. */
    readonly dX: TensorHandle;
    readonly accumulate: boolean;
}
/** d_x = d_y * weight, or d_x + that when accumulate is set; weight as it is or packed for backward. */
export declare function gemmBackwardX(args: GemmBackwardXArgs): void;
export interface GemmBackwardWeightArgs {
    /** [tokens, n], f32 or f64. */
    readonly dY: TensorHandle;
    /** [tokens, k], f32 or f64. */
    readonly x: TensorHandle;
    /** Read and written. [n, k], f32 or f64. */
    readonly dWeight: TensorHandle;
    /** Read and written. [n], f32 or f64. */
    readonly dBias?: TensorHandle | null | undefined;
    readonly accumulate: boolean;
}
/** d_weight = transposed(d_y) * x and d_bias = sum of d_y over tokens, or added to them when accumulate is set. */
export declare function gemmBackwardWeight(args: GemmBackwardWeightArgs): void;
export interface GemmPackArgs {
    /** [n, k], f32 or f64. */
    readonly weight: TensorHandle;
    /** Written. [panels of n, k, 32], or [panels of k, n, 32] for backward, f32 or f64. */
    readonly packed: TensorHandle;
    readonly backward: boolean;
}
/** Lays a weight out in panels of 32 columns for gemm.forward, or for gemm.backward-x when backward is set. */
export declare function gemmPack(args: GemmPackArgs): void;
//# sourceMappingURL=gemm.d.ts.map