import { expertLinear, linear, type PackedWeight, type Parameter, packWeight, type Tensor } from '@trilithon/tensor'

/** A weight that rows are multiplied by. It may keep a second layout of itself, which makes small products faster and changes no bit. */
export class Projection {
  readonly parameter: Parameter
  /** That layout, where `pack` made one. */
  packed: PackedWeight | null = null

  constructor(parameter: Parameter) {
    this.parameter = parameter
  }

  /** x · weightᵀ. x: [rows, k], weight: [n, k]. */
  apply(x: Tensor): Tensor {
    return linear(x, this.parameter.value, { packed: this.packed })
  }

  /** The same with a weight for every expert, [experts, n, k], whose rows begin at `expertStarts`. */
  applyByExpert(x: Tensor, expertStarts: Tensor): Tensor {
    return expertLinear(x, this.parameter.value, expertStarts, this.packed)
  }

  /** Lays the weight out anew: after every change of it, or the next product is refused. */
  pack(): void {
    this.unpack()
    this.packed = packWeight(this.parameter.value)
  }

  unpack(): void {
    this.packed?.dispose()
    this.packed = null
  }
}
