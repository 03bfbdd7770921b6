import { globalNormFinish, globalNormSquareSum } from '@trilithon/native'
import { scope } from '../scope.ts'
import { empty, type Tensor, toArray } from '../tensor.ts'

export interface GradientNorm {
  /** Of all gradients as one vector, before they are scaled. */
  readonly norm: number
  /** What gradients are multiplied by so that their norm is at most `maxNorm`: the `gradientScale` of a step. */
  readonly scale: number
  /** Elements that are NaN or infinite; `norm` and `scale` mean nothing where there are any, and the step must be left out. */
  readonly notFinite: number
}

/** The norm of all gradients, in the order of the parameters. Those without a gradient count as zeros. `maxNorm` null: no limit. */
export function gradientNorm(parameters: Iterable<{ readonly gradient: Tensor | null }>, maxNorm: number | null): GradientNorm {
  return scope(() => {
    const gradients = [...parameters].flatMap(({ gradient }) => (gradient === null ? [] : [gradient]))
    if (gradients.length === 0) return { norm: 0, scale: 1, notFinite: 0 }
    const sums = empty('f64', [gradients.length, 2])
    for (const [slot, gradient] of gradients.entries()) globalNormSquareSum({ x: gradient.handle, sums: sums.handle, slot })
    const result = empty('f64', [3])
    globalNormFinish({ sums: sums.handle, result: result.handle, maxNorm: maxNorm ?? 0 })
    const [norm = 0, scale = 1, notFinite = 0] = toArray(result) as Float64Array
    return { norm, scale, notFinite }
  })
}
