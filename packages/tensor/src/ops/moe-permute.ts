/** Tokens to their experts and back. */
import { moeCombineBackward, moeCombineForward, moePermuteBackward, moePermuteForward, moePermutePlan } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, type Tensor } from '../tensor.ts'

/** Where every (token, slot) goes when all are sorted by expert; within one in the order of tokens and slots. */
export interface PermutePlan {
  /** i32 [tokens, topK]. */
  readonly slotRow: Tensor
  /** First row of each expert, and the number of rows in all: i32 [experts + 1]. */
  readonly expertStarts: Tensor
}

/** Sorts the slots of `ids`, [tokens, topK], by expert. */
export function permutePlan(ids: Tensor, experts: number): PermutePlan {
  return atomic(() => {
    const slotRow = empty('i32', ids.shape)
    const expertStarts = empty('i32', [experts + 1])
    moePermutePlan({ ids: ids.handle, slotRow: slotRow.handle, offsets: expertStarts.handle })
    return { slotRow, expertStarts }
  })
}

/** A row for every slot of x, [tokens, width]: [tokens * topK, width], sorted by expert. */
export function permuteTokens(x: Tensor, { slotRow }: PermutePlan): Tensor {
  return atomic(() => {
    const y = empty(x.dtype, [slotRow.elements, x.dim(1)])
    moePermuteForward({ x: x.handle, slotRow: slotRow.handle, y: y.handle })
    recorder(x)?.add('permute-tokens', [x, slotRow], [y], [slotRow], (step) => {
      const { tensors, accumulate } = step.into([0])
      moePermuteBackward({
        dY: step.gradient(0).handle,
        slotRow: step.held(0).handle,
        dX: (tensors[0] as Tensor).handle,
        accumulate,
      })
    })
    return y
  })
}

/** The sum of each token's rows of x, [tokens * topK, width], times `weights`, [tokens, topK], in the order of the slots: [tokens, width]. */
export function combineTokens(x: Tensor, { slotRow }: PermutePlan, weights: Tensor): Tensor {
  return atomic(() => {
    const y = empty(x.dtype, [slotRow.dim(0), x.dim(1)])
    moeCombineForward({ x: x.handle, slotRow: slotRow.handle, weights: weights.handle, y: y.handle, accumulate: false })
    recorder(x, weights)?.add('combine-tokens', [x, weights, slotRow], [y], [x, weights, slotRow], combineGradient)
    return y
  })
}

function combineGradient(step: BackwardStep): void {
  const [x, weights] = [step.held(0), step.held(1)]
  moeCombineBackward({
    dY: step.gradient(0).handle,
    x: x.handle,
    slotRow: step.held(2).handle,
    weights: weights.handle,
    dX: step.fresh(0, x).handle,
    dWeights: step.fresh(1, weights).handle,
  })
}
