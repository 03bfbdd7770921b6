import type { ParameterSpec } from '@trilithon/core'
import type { DType } from '@trilithon/native'
import { constant, type Initialiser } from './random/initialiser.ts'
import { refuse } from './refuse.ts'
import { keep } from './scope.ts'
import { describeShape, elementsOf, empty, type GradientSlot, type Tensor, write } from './tensor.ts'

export interface ParameterOptions extends Omit<ParameterSpec, 'kind' | 'unit'> {
  readonly kind?: ParameterSpec['kind']
  readonly unit?: string
  /** Zeros unless said otherwise. */
  readonly initialiser?: Initialiser
  /** False: no gradient is recorded. Buffers never have one. */
  readonly isTrainable?: boolean
}

/**
 * A weight of a model: declared with name and shape first (on *meta*, where it takes no memory), allocated later.
 *
 * It owns its value and its gradient, which no scope frees.
 */
export class Parameter implements ParameterSpec {
  readonly name: string
  readonly shape: readonly number[]
  readonly kind: ParameterSpec['kind']
  readonly unit: string
  readonly initialiser: Initialiser
  readonly isTrainable: boolean
  private tensor: Tensor | null = null
  private readonly slot: GradientSlot & { dtype: DType }

  constructor(options: ParameterOptions) {
    this.name = options.name
    this.shape = options.shape
    this.kind = options.kind ?? 'dense'
    this.unit = options.unit ?? ''
    this.initialiser = options.initialiser ?? constant(0)
    this.isTrainable = this.kind !== 'buffer' && (options.isTrainable ?? true)
    if (!this.shape.every((size) => Number.isSafeInteger(size) && size > 0))
      refuse('Parameter', this.name, 'a shape of whole numbers above 0', `[${this.shape.join(', ')}]`)
    this.slot = {
      source: this,
      dtype: 'f32',
      shape: this.shape,
      gradient: null,
      isExclusive: true,
      isKept: true,
      currentValue: () => this.value,
    }
  }

  get elements(): number {
    return elementsOf(this.shape)
  }

  /** Declared, and without memory. */
  get isMeta(): boolean {
    return this.tensor === null
  }

  /** The tensor to compute with. */
  get value(): Tensor {
    return this.tensor ?? refuse('Parameter', this.name, 'a value', 'a parameter on meta: allocate or gather it first')
  }

  /** Sum of the gradients since `zeroGradient`; null when there was none. */
  get gradient(): Tensor | null {
    return this.slot.gradient
  }

  /** Takes memory, not initialised. */
  allocate(dtype: DType = 'f32'): this {
    if (this.tensor !== null) refuse('allocate', this.name, 'a parameter on meta', 'one that has a value')
    this.place(empty(dtype, this.shape))
    return this
  }

  /** Allocates where needed and writes the starting values, which depend on (seed, name) alone; `initialiser` stands in for its own. */
  initialise(seed: number, dtype: DType = 'f32', initialiser = this.initialiser): this {
    const type = this.tensor?.dtype ?? dtype
    if (type !== 'f32' && type !== 'f64') refuse('initialise', this.name, 'dtype f32 or f64', type)
    const { elements } = this
    const array = type === 'f64' ? new Float64Array(elements) : new Float32Array(elements)
    initialiser.fill(array, seed, this.name, 0)
    if (this.tensor === null) this.allocate(type)
    write(this.value, array)
    return this
  }

  /** Puts a tensor in as the value, for example one that was gathered. The parameter owns it from now on. */
  place(tensor: Tensor): void {
    if (this.tensor !== null) refuse('place', this.name, 'a parameter on meta', 'one that has a value')
    if (tensor.shape.length !== this.shape.length || tensor.shape.some((size, dim) => size !== this.shape[dim]))
      refuse('place', this.name, `shape [${this.shape.join(', ')}]`, describeShape(tensor))
    this.tensor = keep(tensor)
    if (!this.isTrainable) return
    this.slot.dtype = tensor.dtype
    tensor.slot = this.slot
  }

  /** Gives the value out, to the caller; the parameter is on meta again. */
  take(): Tensor {
    const { value } = this
    this.tensor = null
    value.slot = null
    return value
  }

  /** Gives the gradient out, to the caller. */
  takeGradient(): Tensor | null {
    const { gradient } = this.slot
    this.slot.gradient = null
    this.slot.isExclusive = true
    return gradient
  }

  zeroGradient(): void {
    this.takeGradient()?.dispose()
  }

  /** Frees value and gradient; the declaration stays. */
  dispose(): void {
    this.zeroGradient()
    if (this.tensor !== null) this.take().dispose()
  }
}
