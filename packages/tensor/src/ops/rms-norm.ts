import { rmsNormBackward, rmsNormForward } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, emptyLike, type Tensor } from '../tensor.ts'

/** y = weight * x / sqrt(mean(x²) + eps) of each row. x and y: [tokens, width]; weight: [width]. */
export function rmsNorm(x: Tensor, weight: Tensor, eps: number): Tensor {
  return atomic(() => {
    const tape = recorder(x, weight)
    const y = emptyLike(x)
    const rstd = tape === null ? null : empty(x.dtype, x.shape.slice(0, 1))
    rmsNormForward({ x: x.handle, weight: weight.handle, y: y.handle, rstd: rstd?.handle, eps })
    tape?.add('rms-norm', [x, weight], [y], [x, weight, rstd], gradient)
    return y
  })
}

function gradient(step: BackwardStep): void {
  const x = step.held(0)
  const weight = step.held(1)
  const { tensors, accumulate } = step.into([1], [weight])
  rmsNormBackward({
    dY: step.gradient(0).handle,
    x: x.handle,
    weight: weight.handle,
    rstd: step.held(2).handle,
    dX: step.fresh(0, x).handle,
    dWeight: (tensors[0] as Tensor).handle,
    accumulate,
  })
}
