import { gemmBackwardWeight, gemmBackwardX, gemmForward } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, type Tensor } from '../tensor.ts'
import { type PackedWeight, weightArguments } from './packed-weight.ts'

export interface LinearOptions {
  /** [n]. */
  readonly bias?: Tensor | null
  /** Of this very weight. */
  readonly packed?: PackedWeight | null
}

/** y = x · weightᵀ + bias. x: [tokens, k], weight: [n, k], y: [tokens, n]. Rows of x and weight may have gaps. */
export function linear(x: Tensor, weight: Tensor, { bias = null, packed = null }: LinearOptions = {}): Tensor {
  return atomic(() => {
    const y = empty(x.dtype, [x.dim(0), weight.dim(0)])
    gemmForward({
      x: x.handle,
      ...weightArguments('linear', weight, packed, 'forward'),
      bias: bias?.handle,
      y: y.handle,
      accumulate: false,
    })
    const tape = recorder(x, weight, bias)
    if (tape !== null) {
      // x is read for the gradient of the weight alone.
      const heldX = weight.slot === null && (bias?.slot ?? null) === null ? null : x
      tape.add('linear', [x, weight, bias], [y], [heldX, weight, bias], (step) => gradient(step, packed))
    }
    return y
  })
}

function gradient(step: BackwardStep, packed: PackedWeight | null): void {
  const [x, weight, bias] = [step.heldOrNull(0), step.held(1), step.heldOrNull(2)]
  const dY = step.gradient(0).handle
  if (step.needs(0)) {
    const { tensors, accumulate } = step.into([0])
    gemmBackwardX({ dY, ...weightArguments('linear', weight, packed, 'backward'), dX: (tensors[0] as Tensor).handle, accumulate })
  }
  if (x !== null) {
    const { tensors, accumulate } = bias === null ? step.into([1]) : step.into([1, 2], [weight, bias])
    gemmBackwardWeight({ dY, x: x.handle, dWeight: (tensors[0] as Tensor).handle, dBias: tensors[1]?.handle, accumulate })
  }
}
