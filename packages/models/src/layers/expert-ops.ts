/** Ops of a mixture of experts: routers, the way of rows to their experts, and back. */
import {
  moeCombineBackward,
  moeCombineForward,
  moePermuteBackward,
  moePermuteForward,
  moePermutePlan,
  moeRouterSigmoidBackward,
  moeRouterSigmoidForward,
  moeRouterSoftmaxBackward,
  moeRouterSoftmaxForward,
} from '@trilithon/native'
import { empty, recorder, type Tensor } from '@trilithon/tensor'
import type { Routes } from './experts.ts'

export interface RouterOptions {
  /** Experts of a token. */
  readonly topK: number
  readonly dtype: 'u8' | 'u16'
  /** Weights of the chosen experts sum to one (before they are scaled). */
  readonly normalize: boolean
  /** Experts to take, [T, k]; null: it chooses. */
  readonly given: Tensor | null
  readonly selectMissing: boolean
}

/** Softmax over all experts, then the best k. */
export function routeBySoftmax(logits: Tensor, { topK, dtype, normalize, given, selectMissing }: RouterOptions): Routes {
  const ids = empty(dtype, [logits.dim(0), topK])
  const weights = empty(logits.dtype, [logits.dim(0), topK])
  moeRouterSoftmaxForward({
    logits: logits.handle,
    given: given?.handle,
    ids: ids.handle,
    weights: weights.handle,
    renormalise: normalize,
    selectMissing,
  })
  recorder(logits)?.add('route-by-softmax', [logits], [ids, weights], [logits, ids], (step) => {
    const [heldLogits, heldIds] = [step.held(0), step.held(1)]
    moeRouterSoftmaxBackward({
      dWeights: step.gradient(1).handle,
      logits: heldLogits.handle,
      ids: heldIds.handle,
      dLogits: step.fresh(0, heldLogits).handle,
      renormalise: normalize,
    })
  })
  return { ids, weights }
}

export interface SigmoidRouterOptions extends RouterOptions {
  /** [E]: decides who is chosen, never the weight. */
  readonly bias: Tensor | null
  readonly groups: number
  readonly groupsKept: number
  readonly scale: number
}

/** Sigmoid of each logit; the best k by sigmoid plus bias, within the best groups. */
export function routeBySigmoid(logits: Tensor, options: SigmoidRouterOptions): Routes {
  const { topK, dtype, normalize, given, selectMissing, bias, groups, groupsKept, scale } = options
  const ids = empty(dtype, [logits.dim(0), topK])
  const weights = empty(logits.dtype, [logits.dim(0), topK])
  moeRouterSigmoidForward({
    logits: logits.handle,
    bias: bias?.handle,
    given: given?.handle,
    ids: ids.handle,
    weights: weights.handle,
    groups,
    groupsKept,
    normalise: normalize,
    scale,
    selectMissing,
  })
  recorder(logits)?.add('route-by-sigmoid', [logits], [ids, weights], [logits, ids], (step) => {
    const [heldLogits, heldIds] = [step.held(0), step.held(1)]
    moeRouterSigmoidBackward({
      dWeights: step.gradient(1).handle,
      logits: heldLogits.handle,
      ids: heldIds.handle,
      dLogits: step.fresh(0, heldLogits).handle,
      normalise: normalize,
      scale,
    })
  })
  return { ids, weights }
}

/** Where every (token, slot) goes when all are sorted by expert. */
export interface ExpertPlan {
  /** i32 [T, k]. */
  readonly slotRow: Tensor
  /** First row of each expert: i32 [E + 1]. */
  readonly expertStarts: Tensor
}

export function planExperts(ids: Tensor, experts: number): ExpertPlan {
  const slotRow = empty('i32', ids.shape)
  const expertStarts = empty('i32', [experts + 1])
  moePermutePlan({ ids: ids.handle, slotRow: slotRow.handle, offsets: expertStarts.handle })
  return { slotRow, expertStarts }
}

/** Rows of x, [T, H], once for each of their experts, sorted: [T * k, H]. */
export function permuteToExperts(x: Tensor, slotRow: Tensor): Tensor {
  const y = empty(x.dtype, [slotRow.elements, x.dim(1)])
  moePermuteForward({ x: x.handle, slotRow: slotRow.handle, y: y.handle })
  recorder(x)?.add('permute-to-experts', [x, slotRow], [y], [x, slotRow], (step) => {
    const { tensors, accumulate } = step.into([0], [step.held(0)])
    moePermuteBackward({ dY: step.gradient(0).handle, slotRow: step.held(1).handle, dX: (tensors[0] as Tensor).handle, accumulate })
  })
  return y
}

/** Weighted sum of the rows of each token, in the order of its slots: [T, H]. */
export function combineExperts(x: Tensor, slotRow: Tensor, weights: Tensor): Tensor {
  const y = empty(x.dtype, [slotRow.dim(0), x.dim(1)])
  moeCombineForward({ x: x.handle, slotRow: slotRow.handle, weights: weights.handle, y: y.handle, accumulate: false })
  recorder(x, weights)?.add('combine-experts', [x, slotRow, weights], [y], [x, slotRow, weights], (step) => {
    const [heldX, heldRows, heldWeights] = [step.held(0), step.held(1), step.held(2)]
    moeCombineBackward({
      dY: step.gradient(0).handle,
      x: heldX.handle,
      slotRow: heldRows.handle,
      weights: heldWeights.handle,
      dX: step.fresh(0, heldX).handle,
      dWeights: step.fresh(2, heldWeights).handle,
    })
  })
  return y
}
