import { invariant } from '@trilithon/core'
import { type Parameter, rmsNorm, type Tensor } from '@trilithon/tensor'
import { Projection } from './projection.ts'

/** Gives modules their weights by Hugging Face's name, and remembers which are projections. */
export class LayerWeights {
  readonly projections: Projection[] = []
  private readonly parameters: ReadonlyMap<string, Parameter>

  constructor(parameters: ReadonlyMap<string, Parameter>) {
    this.parameters = parameters
  }

  parameter(name: string): Parameter {
    const parameter = this.parameters.get(name)
    invariant(parameter !== undefined, `the model declares no weight ${name}`)
    return parameter
  }

  projection(name: string): Projection {
    const projection = new Projection(this.parameter(name))
    this.projections.push(projection)
    return projection
  }

  /** RMSNorm of rows. */
  rmsNorm(name: string, eps: number): (x: Tensor) => Tensor {
    const weight = this.parameter(name)
    return (x) => rmsNorm(x, weight.value, eps)
  }
}
