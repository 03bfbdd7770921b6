/**
 * Finds the compiled addon, on the first call that needs it: importing the package does nothing.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type ErrorCode, TrilithonError } from '@trilithon/core'
import type { MachineInfo } from './machine-info.ts'
import type { DType, MemoryStats, NativeOptions, OpDescription, TensorDescription, TensorHandle, TypedArray } from './tensor-types.ts'

/** One argument of an op as the addon takes it. */
export type OpArgument = TensorHandle | number | boolean | null | undefined

/** What the .node file exports. Everything else in this package is a typed face over it. */
export interface Addon {
  describeMachine(): MachineInfo
  describeOps(): readonly OpDescription[]
  configure(options: NativeOptions): void
  setErrorFactory(factory: (code: ErrorCode, message: string, details: FailureDetails) => Error): void
  createTensor(dtype: DType, shape: readonly number[]): TensorHandle
  viewTensor(source: TensorHandle, shape: readonly number[], strides: readonly number[] | null, offset: number): TensorHandle
  wrapShared(dtype: DType, shape: readonly number[], array: TypedArray): TensorHandle
  disposeTensor(tensor: TensorHandle): void
  describeTensor(tensor: TensorHandle): TensorDescription
  writeTensor(tensor: TensorHandle, array: TypedArray): void
  readTensor(tensor: TensorHandle, array: TypedArray): void
  memoryStats(): MemoryStats
  readonly ops: Readonly<Record<string, (...args: readonly OpArgument[]) => void>>
}

/** What a refused call carries in `details`. */
export interface FailureDetails extends Readonly<Record<string, unknown>> {
  readonly op: string
  /** Missing when the failure is about the whole call. */
  readonly argument?: string
  readonly expected: string
  readonly given: string
}

// The same distance from src/ and from dist/.
const addonUrl = new URL('../build/Release/trilithon_native.node', import.meta.url)
let loaded: Addon | undefined

/** Loads an addon file. Separate from `loadAddon` so that a test can point it at a file that is missing or damaged. */
export function loadAddonFrom(file: string): Addon {
  if (!existsSync(file)) {
    throw new TrilithonError('NATIVE_UNAVAILABLE', `The native addon has not been built: ${file} does not exist.`, {
      hint: 'Run: ./trilithon build',
      details: { file },
    })
  }
  let addon: Addon
  try {
    addon = createRequire(import.meta.url)(file) as Addon
  } catch (cause) {
    const reason = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause)
    throw new TrilithonError('NATIVE_UNAVAILABLE', `The native addon cannot be loaded: ${reason}`, {
      hint: 'Run: ./trilithon build (the addon must be built on a machine like this one)',
      cause,
      details: { file },
    })
  }
  addon.setErrorFactory(toError)
  return addon
}

function toError(code: ErrorCode, message: string, details: FailureDetails): Error {
  const path = details.argument === undefined ? details.op : `${details.op}.${details.argument}`
  return new TrilithonError(code, message, { path, details })
}

/** The addon of this process; each worker thread gets its own instance. */
export function loadAddon(): Addon {
  loaded ??= loadAddonFrom(fileURLToPath(addonUrl))
  return loaded
}

/** Calls an op entry with its arguments in the order of its description. */
export function callOp(name: string, ...args: readonly OpArgument[]): void {
  const op = loadAddon().ops[name]
  if (op === undefined) {
    throw new TrilithonError('NATIVE_UNAVAILABLE', `The native addon has no op ${name}: it is older than this package.`, {
      hint: 'Run: ./trilithon build',
    })
  }
  op(...args)
}
