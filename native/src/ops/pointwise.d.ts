import type { TensorHandle } from '../tensor-types.ts';
export interface PointwiseFillArgs {
    /** Written. any shape, f32 or f64. */
    readonly y: TensorHandle;
    readonly value: number;
}
/** y = value. */
export declare function pointwiseFill(args: PointwiseFillArgs): void;
export interface PointwiseCopyArgs {
    /** any shape, f32 or f64 or bf16 or f16 or e4m3 or e5m2 or i32 or i64 or u32 or u16 or u8. */
    readonly x: TensorHandle;
    /** Written. as x, f32 or f64 or bf16 or f16 or e4m3 or e5m2 or i32 or i64 or u32 or u16 or u8. */
    readonly y: TensorHandle;
}
/** y = x, bit for bit, of any element type and between any strides. */
export declare function pointwiseCopy(args: PointwiseCopyArgs): void;
export interface PointwiseAddArgs {
    /** any shape, f32 or f64. */
    readonly a: TensorHandle;
    /** as a, f32 or f64. */
    readonly b: TensorHandle;
    /** Written. as a, f32 or f64. */
    readonly y: TensorHandle;
}
/** y = a + b; y may be a or b. */
export declare function pointwiseAdd(args: PointwiseAddArgs): void;
export interface PointwiseMultiplyArgs {
    /** any shape, f32 or f64. */
    readonly a: TensorHandle;
    /** as a, f32 or f64. */
    readonly b: TensorHandle;
    /** Written. as a, f32 or f64. */
    readonly y: TensorHandle;
}
/** y = a * b; y may be a or b. */
export declare function pointwiseMultiply(args: PointwiseMultiplyArgs): void;
export interface PointwiseMultiplyAddArgs {
    /** any shape, f32 or f64. */
    readonly a: TensorHandle;
    /** as a, f32 or f64. */
    readonly b: TensorHandle;
    /** Read and written. as a, f32 or f64. */
    readonly y: TensorHandle;
}
/** y = a * b + y with one rounding. */
export declare function pointwiseMultiplyAdd(args: PointwiseMultiplyAddArgs): void;
export interface PointwiseScaleArgs {
    /** any shape, f32 or f64. */
    readonly x: TensorHandle;
    /** Written. as x, f32 or f64. */
    readonly y: TensorHandle;
    readonly factor: number;
}
/** y = factor * x; y may be x. */
export declare function pointwiseScale(args: PointwiseScaleArgs): void;
export interface PointwiseAddScaledArgs {
    /** any shape, f32 or f64. */
    readonly x: TensorHandle;
    /** Read and written. as x, f32 or f64. */
    readonly y: TensorHandle;
    readonly factor: number;
}
/** y = factor * x + y with one rounding. */
export declare function pointwiseAddScaled(args: PointwiseAddScaledArgs): void;
//# sourceMappingURL=pointwise.d.ts.map