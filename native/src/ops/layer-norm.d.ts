import type { TensorHandle } from '../tensor-types.ts';
export interface LayerNormForwardArgs {
    /** [tokens, width], f32 or f64. */
    readonly x: TensorHandle;
    /** [width], f32 or f64. */
    readonly weight: TensorHandle;
    /** [width], f32 or f64. */
    readonly bias?: TensorHandle | null | undefined;
    /** Written. [tokens, width], f32 or f64. */
    readonly y: TensorHandle;
    /** Written. [tokens], f32 or f64. */
    readonly mean?: TensorHandle | null | undefined;
    /** Written. [tokens], f32 or f64. */
    readonly rstd?: TensorHandle | null | undefined;
    readonly eps: number;
}
/** y = weight * (x - mean) * rstd + bias with rstd = 1 / sqrt(variance + eps) of each row. */
export declare function layerNormForward(args: LayerNormForwardArgs): void;
export interface LayerNormBackwardArgs {
    /** [tokens, width], f32 or f64. */
    readonly dY: TensorHandle;
    /** [tokens, width], f32 or f64. */
    readonly x: TensorHandle;
    /** [width], f32 or f64. */
    readonly weight: TensorHandle;
    /** [tokens], f32 or f64. */
    readonly mean: TensorHandle;
    /** [tokens], f32 or f64. */
    readonly rstd: TensorHandle;
    /** Written. [tokens, width], f32 or f64. */
    readonly dX: TensorHandle;
    /** Read and written. [width], f32 or f64. */
    readonly dWeight: TensorHandle;
    /** Read and written. [width], f32 or f64. */
    readonly dBias?: TensorHandle | null | undefined;
    readonly accumulate: boolean;
}
/** Gradients of x, weight and bias; accumulate adds to those of weight and bias. */
export declare function layerNormBackward(args: LayerNormBackwardArgs): void;
//# sourceMappingURL=layer-norm.d.ts.map