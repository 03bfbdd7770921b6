import type { TensorHandle } from '../tensor-types.ts';
export interface ElementaryExpArgs {
    /** [elements], f32 or f64. */
    readonly x: TensorHandle;
    /** Written. [elements], f32 or f64. */
    readonly y: TensorHandle;
}
/** y = e^x. */
export declare function elementaryExp(args: ElementaryExpArgs): void;
export interface ElementaryLogArgs {
    /** [elements], f32 or f64. */
    readonly x: TensorHandle;
    /** Written. [elements], f32 or f64. */
    readonly y: TensorHandle;
}
/** y = natural logarithm of x. */
export declare function elementaryLog(args: ElementaryLogArgs): void;
export interface ElementarySinArgs {
    /** [elements], f32 or f64. */
    readonly x: TensorHandle;
    /** Written. [elements], f32 or f64. */
    readonly y: TensorHandle;
}
/** y = sin(x), x in radians. */
export declare function elementarySin(args: ElementarySinArgs): void;
export interface ElementaryCosArgs {
    /** [elements], f32 or f64. */
    readonly x: TensorHandle;
    /** Written. [elements], f32 or f64. */
    readonly y: TensorHandle;
}
/** y = cos(x), x in radians. */
export declare function elementaryCos(args: ElementaryCosArgs): void;
export interface ElementaryRsqrtArgs {
    /** [elements], f32 or f64. */
    readonly x: TensorHandle;
    /** Written. [elements], f32 or f64. */
    readonly y: TensorHandle;
}
/** y = 1 / sqrt(x). */
export declare function elementaryRsqrt(args: ElementaryRsqrtArgs): void;
export interface ElementarySigmoidArgs {
    /** [elements], f32 or f64. */
    readonly x: TensorHandle;
    /** Written. [elements], f32 or f64. */
    readonly y: TensorHandle;
}
/** y = 1 / (1 + e^-x). */
export declare function elementarySigmoid(args: ElementarySigmoidArgs): void;
export interface ElementarySiluArgs {
    /** [elements], f32 or f64. */
    readonly x: TensorHandle;
    /** Written. [elements], f32 or f64. */
    readonly y: TensorHandle;
}
/** y = x / (1 + e^-x). */
export declare function elementarySilu(args: ElementarySiluArgs): void;
//# sourceMappingURL=elementary.d.ts.map