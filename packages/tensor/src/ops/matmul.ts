/** Products of two activations or of heads, by the same kernels as linear layers. */
import { gemmBackwardWeight, gemmBackwardX, gemmForward, type TensorHandle } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, type Tensor, viewOf } from '../tensor.ts'

/** y = a · b. a: [rows, n], b: [n, columns]. (For a · bᵀ: `linear`.) */
export function matmul(a: Tensor, b: Tensor): Tensor {
  return atomic(() => {
    const y = empty(a.dtype, [a.dim(0), b.dim(1)])
    gemmBackwardX({ dY: a.handle, weight: b.handle, dX: y.handle, accumulate: false })
    recorder(a, b)?.add('matmul', [a, b], [y], [a, b], (step) => {
      const [heldA, heldB] = [step.held(0), step.held(1)]
      const dY = step.gradient(0).handle
      if (step.needs(0)) {
        const { tensors, accumulate } = step.into([0])
        gemmForward({ x: dY, weight: heldB.handle, y: (tensors[0] as Tensor).handle, accumulate })
      }
      if (step.needs(1)) {
        const { tensors, accumulate } = step.into([1])
        gemmBackwardWeight({ dY: heldA.handle, x: dY, dWeight: (tensors[0] as Tensor).handle, accumulate })
      }
    })
    return y
  })
}

/**
 * A product for every head: y[t, h] = x[t, h] · weight[h], or · weight[h]ᵀ where `isTransposed`. x: [tokens, heads, n], weight: [heads, n, k], y:
 * [tokens, heads, k]; transposed x: [tokens, heads, k], y: [tokens, heads, n]. This is how MLA's two halves of kv_b are absorbed.
 */
export function headMatmul(x: Tensor, weight: Tensor, isTransposed = false): Tensor {
  return atomic(() => {
    const y = empty(x.dtype, [x.dim(0), x.dim(1), weight.dim(isTransposed ? 1 : 2)])
    forEachHead([x, y], [weight], ([xHead, yHead], [weightHead]) =>
      isTransposed
        ? gemmForward({ x: xHead as TensorHandle, weight: weightHead, y: yHead as TensorHandle, accumulate: false })
        : gemmBackwardX({ dY: xHead as TensorHandle, weight: weightHead, dX: yHead as TensorHandle, accumulate: false }),
    )
    recorder(x, weight)?.add('head-matmul', [x, weight], [y], [x, weight], (step) => headGradient(step, isTransposed))
    return y
  })
}

function headGradient(step: BackwardStep, isTransposed: boolean): void {
  const [x, weight] = [step.held(0), step.held(1)]
  const dY = step.gradient(0)
  if (step.needs(0)) {
    const { tensors, accumulate } = step.into([0])
    forEachHead([dY, tensors[0] as Tensor], [weight], ([dYHead, dXHead], [weightHead]) =>
      isTransposed
        ? gemmBackwardX({ dY: dYHead as TensorHandle, weight: weightHead, dX: dXHead as TensorHandle, accumulate })
        : gemmForward({ x: dYHead as TensorHandle, weight: weightHead, y: dXHead as TensorHandle, accumulate }),
    )
  }
  if (step.needs(1)) {
    const { tensors, accumulate } = step.into([1])
    forEachHead([x, dY], [tensors[0] as Tensor], ([xHead, dYHead], [dWeightHead]) =>
      gemmBackwardWeight({
        dY: (isTransposed ? dYHead : xHead) as TensorHandle,
        x: (isTransposed ? xHead : dYHead) as TensorHandle,
        dWeight: dWeightHead as TensorHandle,
        accumulate,
      }),
    )
  }
}

/** Calls `product` with views of each head: dim 1 of `rows`, dim 0 of `stacks`. */
function forEachHead(
  rows: readonly Tensor[],
  stacks: readonly Tensor[],
  product: (rows: readonly TensorHandle[], stacks: readonly TensorHandle[]) => void,
): void {
  const heads = (rows[0] as Tensor).dim(1)
  for (let head = 0; head < heads; head++) {
    const views = [...rows.map((tensor) => without(tensor, 1, head)), ...stacks.map((tensor) => without(tensor, 0, head))]
    const handles = views.map(({ handle }) => handle)
    product(handles.slice(0, rows.length), handles.slice(rows.length))
    for (const view of views) view.dispose()
  }
}

/** Element `index` of one dim, which the view has no more. */
function without(tensor: Tensor, dim: number, index: number): Tensor {
  return viewOf(tensor, tensor.shape.toSpliced(dim, 1), tensor.strides.toSpliced(dim, 1), index * (tensor.strides[dim] as number))
}
