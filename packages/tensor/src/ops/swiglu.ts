/** SwiGLU: silu(gate) * up. */
import { swigluBackward, swigluForward, swigluFusedBackward, swigluFusedForward } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, emptyLike, type Tensor } from '../tensor.ts'

/** silu(gate) * up, all [tokens, width]; zero rows are allowed. */
export function swiglu(gate: Tensor, up: Tensor): Tensor {
  return atomic(() => {
    const y = emptyLike(gate)
    swigluForward({ gate: gate.handle, up: up.handle, y: y.handle })
    recorder(gate, up)?.add('swiglu', [gate, up], [y], [gate, up], (step) => {
      const [heldGate, heldUp] = [step.held(0), step.held(1)]
      swigluBackward({
        dY: step.gradient(0).handle,
        gate: heldGate.handle,
        up: heldUp.handle,
        dGate: step.fresh(0, heldGate).handle,
        dUp: step.fresh(1, heldUp).handle,
      })
    })
    return y
  })
}

/** The same of one matrix: gate is the first half of each row, up the second. gateUp: [tokens, 2 * width], y: [tokens, width]. */
export function swigluFused(gateUp: Tensor): Tensor {
  return atomic(() => {
    const y = empty(gateUp.dtype, [gateUp.dim(0), Math.floor(gateUp.dim(1) / 2)])
    swigluFusedForward({ gateUp: gateUp.handle, y: y.handle })
    recorder(gateUp)?.add('swiglu-fused', [gateUp], [y], [gateUp], fusedGradient)
    return y
  })
}

function fusedGradient(step: BackwardStep): void {
  const gateUp = step.held(0)
  swigluFusedBackward({ dY: step.gradient(0).handle, gateUp: gateUp.handle, dGateUp: step.fresh(0, gateUp).handle })
}
