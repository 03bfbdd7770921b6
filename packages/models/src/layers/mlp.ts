import { swiglu, type Tensor } from '@trilithon/tensor'
import type { LayerWeights } from './layer-weights.ts'

/** down(silu(gate(h)) * up(h)): the dense layer, and the expert that all tokens share. */
export function createMlp(weights: LayerWeights, prefix: string): (h: Tensor) => Tensor {
  const gate = weights.projection(`${prefix}.gate_proj.weight`)
  const up = weights.projection(`${prefix}.up_proj.weight`)
  const down = weights.projection(`${prefix}.down_proj.weight`)
  return (h) => down.apply(swiglu(gate.apply(h), up.apply(h)))
}
