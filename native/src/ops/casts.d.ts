import type { TensorHandle } from '../tensor-types.ts';
export interface CastsNarrowArgs {
    /** any shape, f32. */
    readonly x: TensorHandle;
    /** Written. as x, bf16 or f16 or e4m3 or e5m2. */
    readonly y: TensorHandle;
}
/** y = x in the format of y, rounded to nearest even; 8-bit formats saturate. */
export declare function castsNarrow(args: CastsNarrowArgs): void;
export interface CastsWidenArgs {
    /** any shape, bf16 or f16 or e4m3 or e5m2. */
    readonly x: TensorHandle;
    /** Written. as x, f32. */
    readonly y: TensorHandle;
}
/** y = x as f32, exactly. */
export declare function castsWiden(args: CastsWidenArgs): void;
export interface CastsQuantizeArgs {
    /** [rows, columns], f32. */
    readonly x: TensorHandle;
    /** Written. [rows, columns], e4m3. */
    readonly codes: TensorHandle;
    /** Written. [ceil(rows / block_rows), ceil(columns / 128)], f32. */
    readonly scales: TensorHandle;
    readonly blockRows: number;
    readonly amaxFloor: number;
    readonly powerOfTwo: boolean;
}
/** e4m3 codes of x divided by a scale per block: max(largest magnitude, amax_floor) / 448, or the next power of two. */
export declare function castsQuantize(args: CastsQuantizeArgs): void;
export interface CastsDequantizeArgs {
    /** [rows, columns], e4m3. */
    readonly codes: TensorHandle;
    /** [ceil(rows / block_rows), ceil(columns / 128)], f32. */
    readonly scales: TensorHandle;
    /** Written. [rows, columns], f32. */
    readonly y: TensorHandle;
    readonly blockRows: number;
}
/** y = code * scale of its block. */
export declare function castsDequantize(args: CastsDequantizeArgs): void;
//# sourceMappingURL=casts.d.ts.map