import { invariant } from '@trilithon/core'
import { CounterRandom } from '@trilithon/tensor'
import type { RowSource } from './row-source.ts'

export interface MixRowsOptions {
  /** Share of each source; null takes every row of each once. */
  readonly probabilities: readonly number[] | null
  /** A pass ends with the first or with the last source that is used up; those that are used up before begin again. */
  readonly stoppingStrategy: 'first_exhausted' | 'all_exhausted'
  readonly seed: number
}

/**
 * Rows of several sources as one. With probabilities each row is drawn from a source by chance, and rows of a source come in their order; the choice is a
 * function of the seed alone, so every pass has the same rows.
 */
export function mixRows(sources: readonly RowSource[], { probabilities, stoppingStrategy, seed }: MixRowsOptions): RowSource {
  const order = probabilities === null ? concatenated(sources) : drawn(sources, probabilities, stoppingStrategy, seed)
  const at = (row: number) => {
    const source = sources[order.sources[row] ?? -1]
    invariant(source !== undefined, `row ${row} of ${order.rows.length} was asked for`)
    return { source, row: order.rows[row] ?? 0 }
  }
  return {
    count: order.rows.length,
    place(row) {
      const found = at(row)
      return found.source.place(found.row)
    },
    read(row) {
      const found = at(row)
      return found.source.read(found.row)
    },
    close() {
      for (const source of sources) source.close()
    },
  }
}

/** Source and row in it, by row of the mixture. */
interface MixedOrder {
  readonly sources: ArrayLike<number>
  readonly rows: ArrayLike<number>
}

function concatenated(sources: readonly RowSource[]): MixedOrder {
  const total = sources.reduce((sum, { count }) => sum + count, 0)
  const order = { sources: new Uint16Array(total), rows: new Uint32Array(total) }
  let next = 0
  for (const [index, { count }] of sources.entries())
    for (let row = 0; row < count; row++) {
      order.sources[next] = index
      order.rows[next++] = row
    }
  return order
}

function drawn(
  sources: readonly RowSource[],
  probabilities: readonly number[],
  stoppingStrategy: MixRowsOptions['stoppingStrategy'],
  seed: number,
): MixedOrder {
  const total = probabilities.reduce((sum, share) => sum + share, 0)
  invariant(total > 0 && probabilities.length === sources.length, 'every source has a share, and one of them is not 0')
  const random = new CounterRandom(Math.abs(seed), `mix/${Math.sign(seed)}`)
  const taken = sources.map(() => 0)
  // A source that is never drawn cannot be waited for.
  const isUsedUp = (index: number) => (taken[index] ?? 0) >= (sources[index]?.count ?? 0) || probabilities[index] === 0
  const isEnd = () => {
    const drawable = sources.map((_, index) => index).filter((index) => probabilities[index] !== 0)
    return stoppingStrategy === 'first_exhausted' ? drawable.some(isUsedUp) : drawable.every(isUsedUp)
  }
  const order = { sources: [] as number[], rows: [] as number[] }
  while (!isEnd()) {
    const index = choose(probabilities, random.uniform(order.rows.length) * total)
    const count = taken[index] ?? 0
    order.sources.push(index)
    order.rows.push(count % (sources[index]?.count ?? 1))
    taken[index] = count + 1
  }
  return order
}

/** The source in whose share of the line the point lies. */
function choose(probabilities: readonly number[], point: number): number {
  let end = 0
  for (const [index, share] of probabilities.entries()) {
    end += share
    if (point < end) return index
  }
  // Rounding may leave the last point outside.
  return probabilities.findLastIndex((share) => share > 0)
}
