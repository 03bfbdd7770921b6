import { refuse } from '../refuse.ts'
import { describeShape, type Tensor } from '../tensor.ts'

/** Rows of the whole packed sequence, from `begin` up to `end`. */
export interface RowRange {
  readonly begin: number
  readonly end: number
}

/**
 * The third hook of parallelism: *this layer needs the keys of the whole sequence*. A plugin that splits the sequence fills it with native ops; on
 * one device a rank has every row (`localSequence`).
 *
 * Contract:
 * - S1 `rows(tokens)` of all ranks together cover each of `tokens` rows once; each range is ascending and not empty.
 * - S2 `keys(x)` takes this rank's rows, [rows, …], in the order of `rows`, and gives all rows in the order of the sequence, bit for bit as the
 *   ranks gave them.
 * - S3 Its backward adds the gradients of all ranks for a row in rank order, and gives each rank those of its own rows.
 * - S4 `keys` never changes its argument. It may return it.
 * - S5 A tensor whose first dim is not the rank's number of rows is refused.
 */
export interface SequenceGathering {
  readonly rank: number
  readonly ranks: number
  /** What this rank computes of a packed sequence of so many tokens. */
  rows(tokens: number): readonly RowRange[]
  /** Differentiable. `tokens` is the length of the whole packed sequence. */
  keys(x: Tensor, tokens: number): Tensor
}

/** One device: a rank has the whole sequence. */
export const localSequence: SequenceGathering = {
  rank: 0,
  ranks: 1,
  rows: (tokens) => (tokens === 0 ? [] : [{ begin: 0, end: tokens }]),
  keys(x, tokens) {
    if (x.dim(0) !== tokens) refuse('keys', 'x', `${tokens} rows`, describeShape(x))
    return x
  },
}
