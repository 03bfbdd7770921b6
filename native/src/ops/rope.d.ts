import type { TensorHandle } from '../tensor-types.ts';
export interface RopeTablesArgs {
    /** [tokens], i32. */
    readonly positions: TensorHandle;
    /** [half], f32 or f64. */
    readonly inverseFrequencies: TensorHandle;
    /** Written. [tokens, half], f32 or f64. */
    readonly cosines: TensorHandle;
    /** Written. [tokens, half], f32 or f64. */
    readonly sines: TensorHandle;
    readonly scale: number;
}
/** cos and sin of position * inverse_frequency, each times scale. */
export declare function ropeTables(args: RopeTablesArgs): void;
export interface RopeForwardArgs {
    /** [tokens, heads, width], f32 or f64. */
    readonly x: TensorHandle;
    /** [tokens, half], f32 or f64. */
    readonly cosines: TensorHandle;
    /** [tokens, half], f32 or f64. */
    readonly sines: TensorHandle;
    /** Written. [tokens, heads, width], f32 or f64. */
    readonly y: TensorHandle;
    readonly interleaved: boolean;
}
/** Turns the first 2 * half elements of each head by the angles of its token; the rest is copied. */
export declare function ropeForward(args: RopeForwardArgs): void;
export interface RopeBackwardArgs {
    /** [tokens, heads, width], f32 or f64. */
    readonly dY: TensorHandle;
    /** [tokens, half], f32 or f64. */
    readonly cosines: TensorHandle;
    /** [tokens, half], f32 or f64. */
    readonly sines: TensorHandle;
    /** Written. [tokens, heads, width], f32 or f64. */
    readonly dX: TensorHandle;
    readonly interleaved: boolean;
}
/** Gradient of x: the gradient of y turned back by the same angles. */
export declare function ropeBackward(args: RopeBackwardArgs): void;
//# sourceMappingURL=rope.d.ts.map