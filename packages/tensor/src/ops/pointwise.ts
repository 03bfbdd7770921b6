/** Element by element: all arguments of a call have one shape, with gaps or without. Results have none. */
import {
  pointwiseAdd,
  pointwiseAddScaled,
  pointwiseCopy,
  pointwiseFill,
  pointwiseMultiply,
  pointwiseMultiplyAdd,
  pointwiseScale,
} from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { emptyLike, type Tensor } from '../tensor.ts'

/** a + b. */
export function add(a: Tensor, b: Tensor): Tensor {
  return atomic(() => {
    const y = emptyLike(a)
    pointwiseAdd({ a: a.handle, b: b.handle, y: y.handle })
    recorder(a, b)?.add('add', [a, b], [y], [], (step) => {
      step.pass(0, step.gradient(0))
      step.pass(1, step.gradient(0))
    })
    return y
  })
}

/** a * b. */
export function multiply(a: Tensor, b: Tensor): Tensor {
  return atomic(() => {
    const y = emptyLike(a)
    pointwiseMultiply({ a: a.handle, b: b.handle, y: y.handle })
    recorder(a, b)?.add('multiply', [a, b], [y], [a, b], (step) => {
      multiplyGradient(step, 0, 1)
      multiplyGradient(step, 1, 0)
    })
    return y
  })
}

function multiplyGradient(step: BackwardStep, input: number, other: number): void {
  if (!step.needs(input)) return
  const { tensors, accumulate } = step.into([input])
  const call = accumulate ? pointwiseMultiplyAdd : pointwiseMultiply
  call({ a: step.gradient(0).handle, b: step.held(other).handle, y: (tensors[0] as Tensor).handle })
}

/** factor * x. */
export function scale(x: Tensor, factor: number): Tensor {
  return atomic(() => {
    const y = emptyLike(x)
    pointwiseScale({ x: x.handle, y: y.handle, factor })
    recorder(x)?.add('scale', [x], [y], [], (step) => {
      const dX = step.freshOrNull(0)
      if (dX !== null) pointwiseScale({ x: step.gradient(0).handle, y: dX.handle, factor })
    })
    return y
  })
}

/** The same elements in memory of their own, without gaps. */
export function copy(x: Tensor): Tensor {
  return atomic(() => {
    const y = emptyLike(x)
    pointwiseCopy({ x: x.handle, y: y.handle })
    recorder(x)?.add('copy', [x], [y], [], (step) => step.pass(0, step.gradient(0)))
    return y
  })
}

/** Copies the elements of `source` into `target`, which may have gaps. Not differentiable: for buffers such as pages. */
export function copyInto(target: Tensor, source: Tensor): void {
  pointwiseCopy({ x: source.handle, y: target.handle })
  target.writes++
}

/** target += factor * source, with one rounding. Not differentiable: for running averages and sums. */
export function addScaledInto(target: Tensor, source: Tensor, factor: number): void {
  pointwiseAddScaled({ x: source.handle, y: target.handle, factor })
  target.writes++
}

/** Sets every element. Not differentiable. */
export function fill(target: Tensor, value: number): void {
  pointwiseFill({ y: target.handle, value })
  target.writes++
}
