import { layerNormBackward, layerNormForward } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, emptyLike, type Tensor } from '../tensor.ts'

/** y = weight * (x - mean) / sqrt(variance + eps) + bias of each row. x and y: [tokens, width]; weight and bias: [width]. */
export function layerNorm(x: Tensor, weight: Tensor, bias: Tensor | null, eps: number): Tensor {
  return atomic(() => {
    const tape = recorder(x, weight, bias)
    const y = emptyLike(x)
    const rows = x.shape.slice(0, 1)
    const mean = tape === null ? null : empty(x.dtype, rows)
    const rstd = tape === null ? null : empty(x.dtype, rows)
    layerNormForward({
      x: x.handle,
      weight: weight.handle,
      bias: bias?.handle,
      y: y.handle,
      mean: mean?.handle,
      rstd: rstd?.handle,
      eps,
    })
    tape?.add('layer-norm', [x, weight, bias], [y], [x, weight, mean, rstd], bias === null ? gradient : gradientWithBias)
    return y
  })
}

function gradient(step: BackwardStep, hasBias = false): void {
  const x = step.held(0)
  const weight = step.held(1)
  const { tensors, accumulate } = hasBias ? step.into([1, 2], [weight, weight]) : step.into([1], [weight])
  layerNormBackward({
    dY: step.gradient(0).handle,
    x: x.handle,
    weight: weight.handle,
    mean: step.held(2).handle,
    rstd: step.held(3).handle,
    dX: step.fresh(0, x).handle,
    dWeight: (tensors[0] as Tensor).handle,
    dBias: tensors[1]?.handle,
    accumulate,
  })
}

const gradientWithBias = (step: BackwardStep) => gradient(step, true)
