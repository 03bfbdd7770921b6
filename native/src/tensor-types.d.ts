/**
 * Types of the face: handles, dtypes, descriptions.
 */
declare const handleBrand: unique symbol;
/** A tensor of this thread. */
export type TensorHandle = number & {
    readonly [handleBrand]: 'TensorHandle';
};
/** Element types. `f64` computes on the reference backend only, for gradient checks. */
export type DType = 'f32' | 'f64' | 'bf16' | 'f16' | 'e4m3' | 'e5m2' | 'i32' | 'i64' | 'u32' | 'u16' | 'u8';
/** Element type by element type; a `Uint8Array` is raw bytes and fits every dtype. */
export type TypedArray = Float32Array | Float64Array | Int32Array | BigInt64Array | Uint32Array | Uint16Array | Uint8Array;
export interface TensorDescription {
    readonly dtype: DType;
    readonly shape: readonly number[];
    /** In elements. */
    readonly strides: readonly number[];
}
export interface MemoryStats {
    readonly liveTensors: number;
    readonly usedBytes: number;
    readonly peakBytes: number;
    /** Address space of the arena; memory is taken when first touched and then kept. */
    readonly capacityBytes: number;
}
export interface NativeOptions {
    /** Reduction order of every op; `fp32` unless said otherwise. */
    readonly profile?: 'fp32' | 'bf16';
    /** Threads of the pool, before `TRILITHON_THREADS` and the machine's cores. */
    readonly threads?: number;
    /** Most memory that tensors of this thread may take. */
    readonly memoryBytes?: number;
    /** Ops poll its first element and stop with `NATIVE_ABORTED` when it is not 0. Must lie in a SharedArrayBuffer; `null` removes it. */
    readonly abortFlag?: Int32Array | null;
}
export interface OpDescription {
    readonly op: string;
    readonly name: string;
    readonly summary: string;
    readonly args: readonly {
        readonly name: string;
        readonly kind: 'input' | 'output' | 'inout' | 'number' | 'integer' | 'flag';
        readonly optional: boolean;
        /** Shape in words; empty for scalars. */
        readonly shape: string;
        readonly dtypes: readonly DType[];
    }[];
}
export {};
//# sourceMappingURL=tensor-types.d.ts.map