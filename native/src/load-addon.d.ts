import { type ErrorCode } from '@trilithon/core';
import type { MachineInfo } from './machine-info.ts';
import type { DType, MemoryStats, NativeOptions, OpDescription, TensorDescription, TensorHandle, TypedArray } from './tensor-types.ts';
/** One argument of an op as the addon takes it. */
export type OpArgument = TensorHandle | number | boolean | null | undefined;
/** What the .node file exports. Everything else in this package is a typed face over it. */
export interface Addon {
    describeMachine(): MachineInfo;
    describeOps(): readonly OpDescription[];
    configure(options: NativeOptions): void;
    setErrorFactory(factory: (code: ErrorCode, message: string, details: FailureDetails) => Error): void;
    createTensor(dtype: DType, shape: readonly number[]): TensorHandle;
    viewTensor(source: TensorHandle, shape: readonly number[], strides: readonly number[] | null, offset: number): TensorHandle;
    wrapShared(dtype: DType, shape: readonly number[], array: TypedArray): TensorHandle;
    disposeTensor(tensor: TensorHandle): void;
    describeTensor(tensor: TensorHandle): TensorDescription;
    writeTensor(tensor: TensorHandle, array: TypedArray): void;
    readTensor(tensor: TensorHandle, array: TypedArray): void;
    memoryStats(): MemoryStats;
    readonly ops: Readonly<Record<string, (...args: readonly OpArgument[]) => void>>;
}
/** What a refused call carries in `details`. */
export interface FailureDetails extends Readonly<Record<string, unknown>> {
    readonly op: string;
    /** Missing when the failure is about the whole call. */
    readonly argument?: string;
    readonly expected: string;
    readonly given: string;
}
/** Loads an addon file. Separate from `loadAddon` so that a test can point it at a file that is missing or damaged. */
export declare function loadAddonFrom(file: string): Addon;
/** The addon of this process; each worker thread gets its own instance. */
export declare function loadAddon(): Addon;
/** Calls an op entry with its arguments in the order of its description. */
export declare function callOp(name: string, ...args: readonly OpArgument[]): void;
//# sourceMappingURL=load-addon.d.ts.map