/** Views: the same memory under another shape. Nothing is copied; what cannot be a view is refused. */
import { pointwiseCopy } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { refuse } from '../refuse.ts'
import { recorder } from '../tape.ts'
import { describeShape, elementsOf, type Tensor, viewOf } from '../tensor.ts'

/** The elements in the same order under another shape; one dim may be -1. Refused where gaps between the elements do not allow it. */
export function reshape(x: Tensor, shape: readonly number[]): Tensor {
  const sizes = completeShape(x, shape)
  const strides = stridesFor(x, sizes)
  if (strides === null)
    refuse(
      'reshape',
      'x',
      `elements without gaps for shape [${sizes.join(', ')}]`,
      `${describeShape(x)} with strides [${x.strides.join(', ')}]`,
    )
  const y = viewOf(x, sizes, strides, 0)
  recorder(x)?.add('reshape', [x], [y], [], (step) => {
    const dY = step.gradient(0)
    step.pass(0, reshape(dY, x.shape))
  })
  return y
}

/** Two dims exchanged. */
export function transpose(x: Tensor, first: number, second: number): Tensor {
  const [a, b] = [first < 0 ? x.rank + first : first, second < 0 ? x.rank + second : second]
  for (const dim of [a, b]) x.dim(dim)
  const y = viewOf(x, exchanged(x.shape, a, b), exchanged(x.strides, a, b), 0)
  recorder(x)?.add('transpose', [x], [y], [], (step) => {
    const dX = step.freshOrNull(0)
    if (dX !== null) pointwiseCopy({ x: transpose(step.gradient(0), a, b).handle, y: dX.handle })
  })
  return y
}

/** Elements from `begin` up to `end` of one dim. */
export function slice(x: Tensor, dim: number, begin: number, end: number): Tensor {
  const axis = dim < 0 ? x.rank + dim : dim
  const size = x.dim(axis)
  if (!Number.isInteger(begin) || !Number.isInteger(end) || begin < 0 || end > size || begin > end)
    refuse('slice', 'begin, end', `whole numbers from 0 to ${size} in order, dim ${axis} of ${describeShape(x)}`, `${begin}, ${end}`)
  const shape = x.shape.map((original, index) => (index === axis ? end - begin : original))
  const offset = begin * (x.strides[axis] as number)
  const y = viewOf(x, shape, x.strides, offset)
  recorder(x)?.add('slice', [x], [y], [], (step: BackwardStep) => {
    step.addInto(0, (total) => viewOf(total, shape, total.strides, begin * (total.strides[axis] as number)), step.gradient(0))
  })
  return y
}

/** Parts of one dim, one after the other, of these sizes. */
export function split(x: Tensor, dim: number, sizes: readonly number[]): readonly Tensor[] {
  const total = sizes.reduce((sum, size) => sum + size, 0)
  if (total !== x.dim(dim))
    refuse('split', 'sizes', `a sum of ${x.dim(dim)}, dim ${dim} of ${describeShape(x)}`, `${sizes.join(' + ')} = ${total}`)
  let begin = 0
  return sizes.map((size) => {
    begin += size
    return slice(x, dim, begin - size, begin)
  })
}

function exchanged(list: readonly number[], a: number, b: number): readonly number[] {
  return list.with(a, list[b] as number).with(b, list[a] as number)
}

function completeShape(x: Tensor, shape: readonly number[]): readonly number[] {
  const known = elementsOf(shape.filter((size) => size !== -1))
  const open = shape.filter((size) => size === -1).length
  const sizes = open === 1 && known > 0 ? shape.map((size) => (size === -1 ? x.elements / known : size)) : shape
  if (open > 1 || elementsOf(sizes) !== x.elements || !sizes.every((size) => Number.isInteger(size) && size >= 0))
    refuse('reshape', 'shape', `the ${x.elements} elements of ${describeShape(x)}`, `[${shape.join(', ')}]`)
  return sizes
}

/** Strides of `shape` over the elements of `x` in their order, or null. Dims of `x` that follow each other without gaps count as one run. */
function stridesFor(x: Tensor, shape: readonly number[]): readonly number[] | null {
  const strides = new Array<number>(shape.length).fill(1)
  if (x.elements === 0) return strides
  let target = shape.length - 1
  let run = 1
  let runStride = 1
  for (let dim = x.rank - 1; dim >= 0; dim--) {
    const size = x.shape[dim] as number
    if (run === 1) runStride = x.strides[dim] as number
    run *= size
    const outer = nextDimAbove(x, dim)
    if (outer >= 0 && x.strides[outer] === runStride * run) continue
    // The run ends here: dims of the new shape must fill it exactly.
    let step = runStride
    let left = run
    while (target >= 0 && (left > 1 || shape[target] === 1)) {
      const wanted = shape[target] as number
      if (left % wanted !== 0) return null
      strides[target] = step
      step *= wanted
      left /= wanted
      target--
    }
    if (left > 1) return null
    run = 1
  }
  return strides
}

/** The next dim outwards that has more than one element: the strides of others say nothing. */
function nextDimAbove(x: Tensor, dim: number): number {
  let outer = dim - 1
  while (outer >= 0 && x.shape[outer] === 1) outer--
  return outer
}
