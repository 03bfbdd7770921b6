import { combineTokens, permutePlan, permuteTokens } from '../ops/moe-permute.ts'
import type { Tensor } from '../tensor.ts'

/**
 * The second hook of parallelism: *tokens go to experts and come back*. A plugin that spreads experts over ranks fills it with native ops; on one
 * device every expert is here (`localExperts`).
 *
 * Contract:
 * - X1 `owned(experts)` of all ranks together cover each expert once.
 * - X2 `compute` is called once, also when there are no rows, with the rows of the experts that this rank owns, bit for bit as they were, sorted by
 *   expert, and the first row of each (i32 [owned + 1]). Within an expert rows are in the order of the sequence and of slots, whatever rank they
 *   come from. An expert that no token chose has no rows.
 * - X3 y[t] is the sum over the slots of t, in order, of weight times what `compute` gave for that slot: the same bits for any number of ranks.
 * - X4 Gradients reach x, summed for each token in the order of its slots, and `weights`.
 * - X5 `expertStarts` counts what this rank's tokens chose, over all `experts`: i32 [experts + 1].
 * - X6 An id that is no expert is refused.
 */
export interface ExpertExchange {
  /** Experts whose weights this rank has. */
  owned(experts: number): { readonly first: number; readonly count: number }
  /** x: [tokens, width]; ids and weights: [tokens, topK]. */
  run(
    x: Tensor,
    ids: Tensor,
    weights: Tensor,
    experts: number,
    compute: (rows: Tensor, expertStarts: Tensor) => Tensor,
  ): { readonly y: Tensor; readonly expertStarts: Tensor }
}

/** One device: rows are sorted by expert, and summed by token again. */
export const localExperts: ExpertExchange = {
  owned: (experts) => ({ first: 0, count: experts }),
  run(x, ids, weights, experts, compute) {
    const plan = permutePlan(ids, experts)
    return { y: combineTokens(compute(permuteTokens(x, plan), plan.expertStarts), plan, weights), expertStarts: plan.expertStarts }
  },
}
