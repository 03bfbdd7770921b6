/**
 * Tensors by handle. A handle is a number with a generation inside: after `disposeTensor` it is refused for ever, never read.
 *
 * This is the floor under `@trilithon/tensor`, which owns lifetimes (scopes) and shapes; handles belong to the thread that made them.
 */
import { loadAddon } from './load-addon.ts'

declare const handleBrand: unique symbol

/** A tensor of this thread. */
export type TensorHandle = number & { readonly [handleBrand]: 'TensorHandle' }

/** Element types. `f64` computes on the reference backend only, for gradient checks. */
export type DType = 'f32' | 'f64' | 'bf16' | 'f16' | 'e4m3' | 'e5m2' | 'i32' | 'i64' | 'u32' | 'u16' | 'u8'

/** Element type by element type; a `Uint8Array` is raw bytes and fits every dtype. */
export type TypedArray = Float32Array | Float64Array | Int32Array | BigInt64Array | Uint32Array | Uint16Array | Uint8Array

export interface TensorDescription {
  readonly dtype: DType
  readonly shape: readonly number[]
  /** In elements. */
  readonly strides: readonly number[]
}

export interface MemoryStats {
  readonly liveTensors: number
  readonly usedBytes: number
  readonly peakBytes: number
  /** Address space of the arena; memory is taken when first touched and then kept. */
  readonly capacityBytes: number
}

export interface NativeOptions {
  /** Reduction order of every op; `fp32` unless said otherwise. */
  readonly profile?: 'fp32' | 'bf16'
  /** Threads of the pool, before `TRILITHON_THREADS` and the machine's cores. */
  readonly threads?: number
  /** Most memory that tensors of this thread may take. */
  readonly memoryBytes?: number
  /** Ops poll its first element and stop with `NATIVE_ABORTED` when it is not 0. Must lie in a SharedArrayBuffer; `null` removes it. */
  readonly abortFlag?: Int32Array | null
}

export interface OpDescription {
  readonly op: string
  readonly name: string
  readonly summary: string
  readonly args: readonly {
    readonly name: string
    readonly kind: 'input' | 'output' | 'inout' | 'number' | 'integer' | 'flag'
    readonly optional: boolean
    /** Shape in words; empty for scalars. */
    readonly shape: string
    readonly dtypes: readonly DType[]
  }[]
}

/** Sets what holds for all later calls of this thread. Refused while tensors of this thread live. */
export function configureNative(options: NativeOptions): void {
  loadAddon().configure(options)
}

/** A new contiguous tensor. Its elements are not initialised. */
export function createTensor(dtype: DType, shape: readonly number[]): TensorHandle {
  return loadAddon().createTensor(dtype, shape)
}

/** The same storage under another shape: contiguous, or with `strides`; from `offset` elements after the first of `source`. */
export function viewTensor(
  source: TensorHandle,
  shape: readonly number[],
  strides: readonly number[] | null = null,
  offset = 0,
): TensorHandle {
  return loadAddon().viewTensor(source, shape, strides, offset)
}

/** A tensor over memory of a SharedArrayBuffer, without a copy. */
export function wrapShared(dtype: DType, shape: readonly number[], array: TypedArray): TensorHandle {
  return loadAddon().wrapShared(dtype, shape, array)
}

/** Gives the handle up. The memory is free when the last view of its storage is disposed. */
export function disposeTensor(tensor: TensorHandle): void {
  loadAddon().disposeTensor(tensor)
}

export function describeTensor(tensor: TensorHandle): TensorDescription {
  return loadAddon().describeTensor(tensor)
}

/** Copies all elements of `array` into a contiguous tensor of as many bytes. */
export function writeTensor(tensor: TensorHandle, array: TypedArray): void {
  loadAddon().writeTensor(tensor, array)
}

/** Copies all elements of a contiguous tensor into `array`, which has as many bytes. */
export function readTensor(tensor: TensorHandle, array: TypedArray): void {
  loadAddon().readTensor(tensor, array)
}

export function memoryStats(): MemoryStats {
  return loadAddon().memoryStats()
}

/** Every op entry of this build and what it takes. */
export function describeOps(): readonly OpDescription[] {
  return loadAddon().describeOps()
}
