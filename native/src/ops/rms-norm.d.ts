import type { TensorHandle } from '../tensor-types.ts';
export interface RmsNormForwardArgs {
    /** [tokens, width], f32 or f64. */
    readonly x: TensorHandle;
    /** [width], f32 or f64. */
    readonly weight: TensorHandle;
    /** Written. [tokens, width], f32 or f64. */
    readonly y: TensorHandle;
    /** Written. [tokens], f32 or f64. */
    readonly rstd?: TensorHandle | null | undefined;
    readonly eps: number;
}
/** y = weight * x * rstd with rstd = 1 / sqrt(mean(x^2) + eps) of each row. */
export declare function rmsNormForward(args: RmsNormForwardArgs): void;
export interface RmsNormBackwardArgs {
    /** [tokens, width], f32 or f64. */
    readonly dY: TensorHandle;
    /** [tokens, width], f32 or f64. */
    readonly x: TensorHandle;
    /** [width], f32 or f64. */
    readonly weight: TensorHandle;
    /** [tokens], f32 or f64. */
    readonly rstd: TensorHandle;
    /** Written. [tokens, width], f32 or f64. */
    readonly dX: TensorHandle;
    /** Read and written. [width], f32 or f64. */
    readonly dWeight: TensorHandle;
    readonly accumulate: boolean;
}
/** Gradients of x and weight; accumulate adds to d_weight instead of setting it. */
export declare function rmsNormBackward(args: RmsNormBackwardArgs): void;
//# sourceMappingURL=rms-norm.d.ts.map