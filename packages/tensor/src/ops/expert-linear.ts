import { groupedGemmBackwardWeight, groupedGemmBackwardX, groupedGemmForward } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, type Tensor } from '../tensor.ts'
import { type PackedWeight, weightArguments } from './packed-weight.ts'

/**
 * A linear layer per expert: rows `expertStarts[e]` up to `expertStarts[e + 1]` (i32 [experts + 1]) of x, [rows, k], by weight e of [experts, n, k].
 * Experts without rows, and no rows at all, are allowed.
 */
export function expertLinear(x: Tensor, weight: Tensor, expertStarts: Tensor, packed: PackedWeight | null = null): Tensor {
  return atomic(() => {
    const y = empty(x.dtype, [x.dim(0), weight.dim(1)])
    groupedGemmForward({
      x: x.handle,
      ...weightArguments('expertLinear', weight, packed, 'forward'),
      expertStarts: expertStarts.handle,
      y: y.handle,
      accumulate: false,
    })
    // x is read for the gradient of the weight alone.
    const held = [weight.slot === null ? null : x, weight, expertStarts]
    recorder(x, weight)?.add('expert-linear', [x, weight, expertStarts], [y], held, (step) => gradient(step, packed))
    return y
  })
}

function gradient(step: BackwardStep, packed: PackedWeight | null): void {
  const [x, weight] = [step.heldOrNull(0), step.held(1)]
  const expertStarts = step.held(2).handle
  const dY = step.gradient(0).handle
  if (step.needs(0)) {
    const { tensors, accumulate } = step.into([0])
    const dX = (tensors[0] as Tensor).handle
    groupedGemmBackwardX({ dY, ...weightArguments('expertLinear', weight, packed, 'backward'), expertStarts, dX, accumulate })
  }
  if (x !== null) {
    const { tensors, accumulate } = step.into([1])
    groupedGemmBackwardWeight({ dY, x: x.handle, expertStarts, dWeight: (tensors[0] as Tensor).handle, accumulate })
  }
}
