/**
 * Tensors by handle. A handle is a number with a generation inside: after `disposeTensor` it is refused for ever, never read.
 *
 * This is the floor under `@trilithon/tensor`, which owns lifetimes (scopes) and shapes; handles belong to the thread that made them.
 */
import { loadAddon } from './load-addon.ts'
import type { DType, MemoryStats, NativeOptions, OpDescription, TensorDescription, TensorHandle, TypedArray } from './tensor-types.ts'

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
