/**
 * Tensors by handle. A handle is a number with a generation inside: after `disposeTensor` it is refused for ever, never read.
 *
 * This is the floor under `@trilithon/tensor`, which owns lifetimes (scopes) and shapes; handles belong to the thread that made them.
 */
import { loadAddon } from './load-addon.js';
/** Sets what holds for all later calls of this thread. Refused while tensors of this thread live. */
export function configureNative(options) {
    loadAddon().configure(options);
}
/** A new contiguous tensor. Its elements are not initialised. */
export function createTensor(dtype, shape) {
    return loadAddon().createTensor(dtype, shape);
}
/** The same storage under another shape: contiguous, or with `strides`; from `offset` elements after the first of `source`. */
export function viewTensor(source, shape, strides = null, offset = 0) {
    return loadAddon().viewTensor(source, shape, strides, offset);
}
/** A tensor over memory of a SharedArrayBuffer, without a copy. */
export function wrapShared(dtype, shape, array) {
    return loadAddon().wrapShared(dtype, shape, array);
}
/** Gives the handle up. The memory is free when the last view of its storage is disposed. */
export function disposeTensor(tensor) {
    loadAddon().disposeTensor(tensor);
}
export function describeTensor(tensor) {
    return loadAddon().describeTensor(tensor);
}
/** Copies all elements of `array` into a contiguous tensor of as many bytes. */
export function writeTensor(tensor, array) {
    loadAddon().writeTensor(tensor, array);
}
/** Copies all elements of a contiguous tensor into `array`, which has as many bytes. */
export function readTensor(tensor, array) {
    loadAddon().readTensor(tensor, array);
}
export function memoryStats() {
    return loadAddon().memoryStats();
}
/** Every op entry of this build and what it takes. */
export function describeOps() {
    return loadAddon().describeOps();
}
//# sourceMappingURL=tensors.js.map