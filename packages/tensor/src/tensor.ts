/**
 * Tensor: a handle into the native arena, with its shape beside it.
 *
 * The native package guards the memory: a disposed handle is refused there for ever, with op and argument, and every op checks shapes, dtypes and
 * gaps in words. This class adds ownership (scopes), views, and the link to the tape.
 */
import {
  createTensor,
  type DType,
  disposeTensor,
  memoryStats,
  pointwiseFill,
  readTensor,
  type TensorHandle,
  type TypedArray,
  viewTensor,
  wrapShared,
  writeTensor,
} from '@trilithon/native'
import { Owned } from './owned.ts'
import { refuse } from './refuse.ts'
import { adopt, atomic } from './scope.ts'

/** Where a tensor's memory is. */
export type Device = 'cpu' | 'cuda'

/** Where the gradient of a tensor gathers. The tape gives every tensor that it differentiates through one of these. */
export interface GradientSlot {
  /** Who may record with this tensor: a tape, or a parameter, which all tapes may use. */
  readonly source: object
  readonly dtype: DType
  readonly shape: readonly number[]
  gradient: Tensor | null
  /** False while `gradient` shares its memory with another gradient: then it may not be added to in place. */
  isExclusive: boolean
  /** The gradient outlives the backward: of parameters and of watched tensors. */
  isKept: boolean
  /** Of a parameter: its value now, which gathering may exchange between forward and backward. */
  readonly currentValue?: () => Tensor
}

export class Tensor extends Owned {
  /** For native ops. After `dispose` they refuse it, naming op and argument. */
  readonly handle: TensorHandle
  readonly dtype: DType
  readonly shape: readonly number[]
  /** In elements. */
  readonly strides: readonly number[]
  readonly device: Device = 'cpu'
  /** Set by the tape and by parameters; null for tensors that no gradient reaches. */
  slot: GradientSlot | null = null
  /** Shared by all views of one memory: how often it was overwritten. */
  readonly memory: { writes: number }
  private disposed = false
  /** Backward steps that still need the elements. */
  private holds = 0
  /** The same memory for those steps, once the owner has disposed this. */
  private held: Tensor | null = null

  /** Takes over a native handle. Use `empty`, `zeros`, `fromArray` or an op to make a tensor. */
  constructor(
    handle: TensorHandle,
    dtype: DType,
    shape: readonly number[],
    strides: readonly number[],
    memory: { writes: number } = { writes: 0 },
  ) {
    super()
    this.handle = handle
    this.memory = memory
    this.dtype = dtype
    this.shape = shape
    this.strides = strides
    adopt(this)
  }

  /** How often the memory was overwritten since it was made, by whichever view. Ops that write in place count it up. */
  get writes(): number {
    return this.memory.writes
  }

  set writes(count: number) {
    this.memory.writes = count
  }

  get rank(): number {
    return this.shape.length
  }

  get elements(): number {
    return elementsOf(this.shape)
  }

  get isDisposed(): boolean {
    return this.disposed
  }

  get isContiguous(): boolean {
    let expected = 1
    for (let dim = this.shape.length - 1; dim >= 0; dim--) {
      const size = this.shape[dim] as number
      if (size !== 1 && this.strides[dim] !== expected) return false
      expected *= size
    }
    return true
  }

  /** Size of one dim; negative counts from the last. */
  dim(index: number): number {
    const size = this.shape[index < 0 ? this.shape.length + index : index]
    return size ?? refuse('dim', 'index', `a dim of ${describeShape(this)}`, String(index))
  }

  /** Gives the tensor up. Its memory is free when the last view of it, and the last backward step that needs it, is gone. */
  override dispose(): void {
    if (this.holds > 0 && !this.disposed) this.held = viewOf(this, this.shape, this.strides, 0, true)
    disposeTensor(this.handle)
    this.disposed = true
    this.owner?.remove(this)
  }

  /** For the tape: the elements stay readable through `heldTensor` until `unhold`, also when the owner disposes the tensor. */
  hold(): void {
    this.holds++
  }

  unhold(): void {
    if (--this.holds > 0 || this.held === null) return
    this.held.dispose()
    this.held = null
  }

  get heldTensor(): Tensor {
    return this.held ?? this
  }

  override toString(): string {
    return `Tensor(${describeShape(this)}${this.disposed ? ', disposed' : ''})`
  }
}

/** `f32 [2, 3]`, as messages name a tensor. */
export function describeShape(tensor: { readonly dtype: DType; readonly shape: readonly number[] }): string {
  return `${tensor.dtype} [${tensor.shape.join(', ')}]`
}

export function elementsOf(shape: readonly number[]): number {
  let count = 1
  for (const size of shape) count *= size
  return count
}

/** Row-major strides without gaps. */
export function stridesOf(shape: readonly number[]): readonly number[] {
  const strides = new Array<number>(shape.length)
  let step = 1
  for (let dim = shape.length - 1; dim >= 0; dim--) {
    strides[dim] = step
    step *= shape[dim] as number
  }
  return strides
}

/** A new tensor in the innermost scope; its elements are not initialised. */
export function empty(dtype: DType, shape: readonly number[], device: Device = 'cpu'): Tensor {
  if (device !== 'cpu') refuse('empty', 'device', 'cpu, the device that this build computes on', device, 'KERNEL_UNAVAILABLE')
  return new Tensor(createTensor(dtype, shape), dtype, shape, stridesOf(shape))
}

/** A tensor of the same dtype and shape without gaps, not initialised. */
export function emptyLike(tensor: { readonly dtype: DType; readonly shape: readonly number[] }): Tensor {
  return empty(tensor.dtype, tensor.shape)
}

/** A tensor with all bits zero. */
export function zeros(dtype: DType, shape: readonly number[]): Tensor {
  const tensor = empty(dtype, shape)
  if (dtype === 'f32' || dtype === 'f64') pointwiseFill({ y: tensor.handle, value: 0 })
  else writeTensor(tensor.handle, new Uint8Array(elementsOf(shape) * bytesPerElement[dtype]))
  return tensor
}

/** Copies an array of the host into a new tensor. Plain numbers are rounded to the dtype (f32, f64 and integers). */
export function fromArray(dtype: DType, shape: readonly number[], array: TypedArray | readonly number[]): Tensor {
  return atomic(() => {
    const tensor = empty(dtype, shape)
    writeTensor(tensor.handle, typedArray(dtype, array))
    return tensor
  })
}

/** Overwrites all elements with an array of the host. */
export function write(tensor: Tensor, array: TypedArray | readonly number[]): void {
  writeTensor(tensor.handle, typedArray(tensor.dtype, array))
  tensor.writes++
}

/** Copies the elements of a tensor without gaps to the host, in its own element type (16-bit floats as bit patterns). */
export function toArray(tensor: Tensor): TypedArray {
  const array = hostArray(tensor.dtype, tensor.elements)
  readTensor(tensor.handle, array)
  return array
}

/** The only element of a tensor as a number. */
export function item(tensor: Tensor): number {
  if (tensor.elements !== 1) refuse('item', 'tensor', 'one element', describeShape(tensor))
  const [value] = toArray(tensor)
  return Number(value)
}

/** A tensor over memory of a SharedArrayBuffer, without a copy. */
export function fromShared(dtype: DType, shape: readonly number[], array: TypedArray): Tensor {
  return new Tensor(wrapShared(dtype, shape, array), dtype, shape, stridesOf(shape))
}

/**
 * Another shape over the memory of `source`, from `offset` elements after its first. Not differentiable: `reshape`, `slice` and `transpose` are.
 * `isUnowned` keeps it out of every scope.
 */
export function viewOf(source: Tensor, shape: readonly number[], strides: readonly number[], offset: number, isUnowned = false): Tensor {
  const view = new Tensor(viewTensor(source.handle, shape, strides, offset), source.dtype, shape, strides, source.memory)
  if (isUnowned) view.owner?.remove(view)
  return view
}

export interface TensorMemory {
  readonly tensors: number
  readonly bytes: number
  readonly peakBytes: number
}

/** Tensors and bytes that live in this thread now: the same before and after a step that does not leak. */
export function liveTensors(): TensorMemory {
  const { liveTensors: tensors, usedBytes: bytes, peakBytes } = memoryStats()
  return { tensors, bytes, peakBytes }
}

export const bytesPerElement: Readonly<Record<DType, number>> = {
  f32: 4,
  f64: 8,
  bf16: 2,
  f16: 2,
  e4m3: 1,
  e5m2: 1,
  i32: 4,
  i64: 8,
  u32: 4,
  u16: 2,
  u8: 1,
}

function typedArray(dtype: DType, array: TypedArray | readonly number[]): TypedArray {
  return Array.isArray(array) ? hostArray(dtype, array) : (array as TypedArray)
}

function hostArray(dtype: DType, content: number | readonly number[]): TypedArray {
  switch (dtype) {
    case 'f32':
      return new Float32Array(content as number)
    case 'f64':
      return new Float64Array(content as number)
    case 'i32':
      return new Int32Array(content as number)
    case 'u32':
      return new Uint32Array(content as number)
    case 'i64':
      return typeof content === 'number' ? new BigInt64Array(content) : BigInt64Array.from(content, BigInt)
    case 'u16':
      return new Uint16Array(content as number)
    case 'u8':
      return new Uint8Array(content as number)
    default:
      // Numbers would be taken for bit patterns; formats with their own rounding are reached by a cast.
      if (typeof content !== 'number') refuse('fromArray', 'array', `bit patterns in a typed array for ${dtype}`, 'plain numbers')
      return dtype === 'bf16' || dtype === 'f16' ? new Uint16Array(content) : new Uint8Array(content)
  }
}
