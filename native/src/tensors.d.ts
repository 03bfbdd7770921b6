import type { DType, MemoryStats, NativeOptions, OpDescription, TensorDescription, TensorHandle, TypedArray } from './tensor-types.ts';
/** Sets what holds for all later calls of this thread. Refused while tensors of this thread live. */
export declare function configureNative(options: NativeOptions): void;
/** A new contiguous tensor. Its elements are not initialised. */
export declare function createTensor(dtype: DType, shape: readonly number[]): TensorHandle;
/** The same storage under another shape: contiguous, or with `strides`; from `offset` elements after the first of `source`. */
export declare function viewTensor(source: TensorHandle, shape: readonly number[], strides?: readonly number[] | null, offset?: number): TensorHandle;
/** A tensor over memory of a SharedArrayBuffer, without a copy. */
export declare function wrapShared(dtype: DType, shape: readonly number[], array: TypedArray): TensorHandle;
/** Gives the handle up. The memory is free when the last view of its storage is disposed. */
export declare function disposeTensor(tensor: TensorHandle): void;
export declare function describeTensor(tensor: TensorHandle): TensorDescription;
/** Copies all elements of `array` into a contiguous tensor of as many bytes. */
export declare function writeTensor(tensor: TensorHandle, array: TypedArray): void;
/** Copies all elements of a contiguous tensor into `array`, which has as many bytes. */
export declare function readTensor(tensor: TensorHandle, array: TypedArray): void;
export declare function memoryStats(): MemoryStats;
/** Every op entry of this build and what it takes. */
export declare function describeOps(): readonly OpDescription[];
//# sourceMappingURL=tensors.d.ts.map