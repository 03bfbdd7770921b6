import type { TensorHandle } from '../tensor-types.ts';
export interface GroupedGemmForwardArgs {
    /** [rows, k], f32 or f64. */
    readonly x: TensorHandle;
    /** [experts, n, k], f32 or f64. */
    readonly weight?: TensorHandle | null | undefined;
    /** [experts, panels of n, k, 32], f32 or f64. */
    readonly packed?: TensorHandle | null | undefined;
    /** [experts + 1], i32. */
    readonly expertStarts: TensorHandle;
    /** Read and written. [rows, n], f32 or f64. */
    readonly y: TensorHandle;
    readonly accumulate: boolean;
}
/** Rows of x of each expert times its transposed weight, added to y when accumulate is set; weights as they are or packed. */
export declare function groupedGemmForward(args: GroupedGemmForwardArgs): void;
export interface GroupedGemmBackwardXArgs {
    /** [rows, n], f32 or f64. */
    readonly dY: TensorHandle;
    /** [experts, n, k], f32 or f64. */
    readonly weight?: TensorHandle | null | undefined;
    /** [experts, panels of k, n, 32], f32 or f64. */
    readonly packed?: TensorHandle | null | undefined;
    /** [experts + 1], i32. */
    readonly expertStarts: TensorHandle;
    /** Read and written. [rows, k], f32 or f64. */
    readonly dX: TensorHandle;
    readonly accumulate: boolean;
}
/** Rows of d_y of each expert times its weight, added to d_x when accumulate is set; weights as they are or packed for backward. */
export declare function groupedGemmBackwardX(args: GroupedGemmBackwardXArgs): void;
export interface GroupedGemmBackwardWeightArgs {
    /** [rows, n], f32 or f64. */
    readonly dY: TensorHandle;
    /** [rows, k], f32 or f64. */
    readonly x: TensorHandle;
    /** [experts + 1], i32. */
    readonly expertStarts: TensorHandle;
    /** Read and written. [experts, n, k], f32 or f64. */
    readonly dWeight: TensorHandle;
    readonly accumulate: boolean;
}
/** Transposed rows of d_y times rows of x of each expert, added to d_weight when accumulate is set; an expert without rows gets 0. */
export declare function groupedGemmBackwardWeight(args: GroupedGemmBackwardWeightArgs): void;
export interface GroupedGemmPackArgs {
    /** [experts, n, k], f32 or f64. */
    readonly weight: TensorHandle;
    /** Written. [experts, panels of n, k, 32], or [experts, panels of k, n, 32] for backward, f32 or f64. */
    readonly packed: TensorHandle;
    readonly backward: boolean;
}
/** Lays the weight of each expert out in panels of 32 columns for the forward product, or for backward-x when backward is set. */
export declare function groupedGemmPack(args: GroupedGemmPackArgs): void;
//# sourceMappingURL=grouped-gemm.d.ts.map