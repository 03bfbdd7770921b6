import type { TensorHandle } from '../tensor-types.ts';
export interface SwigluForwardArgs {
    /** [tokens, width], f32 or f64. */
    readonly gate: TensorHandle;
    /** [tokens, width], f32 or f64. */
    readonly up: TensorHandle;
    /** Written. [tokens, width], f32 or f64. */
    readonly y: TensorHandle;
}
/** y = silu(gate) * up. */
export declare function swigluForward(args: SwigluForwardArgs): void;
export interface SwigluBackwardArgs {
    /** [tokens, width], f32 or f64. */
    readonly dY: TensorHandle;
    /** [tokens, width], f32 or f64. */
    readonly gate: TensorHandle;
    /** [tokens, width], f32 or f64. */
    readonly up: TensorHandle;
    /** Written. [tokens, width], f32 or f64. */
    readonly dGate: TensorHandle;
    /** Written. [tokens, width], f32 or f64. */
    readonly dUp: TensorHandle;
}
/** Gradients of gate and up. */
export declare function swigluBackward(args: SwigluBackwardArgs): void;
export interface SwigluFusedForwardArgs {
    /** [tokens, 2 * width], f32 or f64. */
    readonly gateUp: TensorHandle;
    /** Written. [tokens, width], f32 or f64. */
    readonly y: TensorHandle;
}
/** y = silu(gate) * up; gate is the first half of each row of gate_up, up the second. */
export declare function swigluFusedForward(args: SwigluFusedForwardArgs): void;
export interface SwigluFusedBackwardArgs {
    /** [tokens, width], f32 or f64. */
    readonly dY: TensorHandle;
    /** [tokens, 2 * width], f32 or f64. */
    readonly gateUp: TensorHandle;
    /** Written. [tokens, 2 * width], f32 or f64. */
    readonly dGateUp: TensorHandle;
}
/** Gradient of gate_up. */
export declare function swigluFusedBackward(args: SwigluFusedBackwardArgs): void;
//# sourceMappingURL=swiglu.d.ts.map