import type { Tensor } from '@trilithon/tensor'
import { combineExperts, permuteToExperts, planExperts } from './expert-ops.ts'

/**
 * The second hook of parallelism: *tokens go to experts and come back*. A plugin that spreads experts over ranks fills it with native ops; on one
 * device every expert is here (`localExperts`).
 *
 * Contract:
 * - E1 `compute` is called once, with the rows of the experts that this rank has, sorted by expert, and the first row of each. Within an expert rows are
 *   in the order of the sequence, whatever rank they come from.
 * - E2 y[t] is the sum over its slots, in order, of weight times what `compute` gave for that slot: the same bits for every number of ranks.
 * - E3 Gradients reach x and `weights`.
 * - E4 `expertStarts` counts what this rank's tokens chose, over all `experts`.
 */
export interface ExpertExchange {
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
  run(x, ids, weights, experts, compute) {
    const { slotRow, expertStarts } = planExperts(ids, experts)
    return { y: combineExperts(compute(permuteToExperts(x, slotRow), expertStarts), slotRow, weights), expertStarts }
  },
}
