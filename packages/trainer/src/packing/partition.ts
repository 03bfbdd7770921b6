import { invariant } from '@trilithon/core'

/** Items of one part and their total cost. */
interface Part {
  readonly items: readonly number[]
  readonly cost: number
}

/** A partial solution: k parts with equally many items, heaviest first. */
interface Partial {
  readonly parts: readonly Part[]
  readonly spread: number
}

/**
 * Distributes items over `count` parts with equally many items each, so that the heaviest part is light: Karmarkar-Karp differencing over groups of
 * `count` items, then swaps of pairs while they help. Returns indices, ascending in each part. The difference between parts is never above that between
 * the dearest and the cheapest item. The number of items is a multiple of `count`.
 */
export function partitionEvenly(costs: readonly number[], count: number): number[][] {
  invariant(count > 0 && costs.length % count === 0, `${costs.length} items do not go into ${count} equal parts`)
  if (costs.length === 0) return Array.from({ length: count }, () => [])
  const byCost = costs.map((_, index) => index).sort((a, b) => (costs[b] ?? 0) - (costs[a] ?? 0) || a - b)
  const open: Partial[] = []
  for (let first = 0; first < byCost.length; first += count) {
    open.push(toPartial(byCost.slice(first, first + count).map((item) => ({ items: [item], cost: costs[item] ?? 0 }))))
  }
  while (open.length > 1) {
    // The sort is stable, so equal spreads go in the order in which they were made.
    open.sort((a, b) => b.spread - a.spread)
    const [first, second, ...others] = open
    if (first === undefined || second === undefined) break
    open.splice(0, open.length, ...others, joinOpposed(first, second))
  }
  const parts = swapPairs(open[0]?.parts ?? [], costs)
  return parts.map(({ items }) => [...items].sort((a, b) => a - b))
}

function toPartial(parts: readonly Part[]): Partial {
  const sorted = [...parts].sort((a, b) => b.cost - a.cost)
  return { parts: sorted, spread: (sorted[0]?.cost ?? 0) - (sorted.at(-1)?.cost ?? 0) }
}

/** The heaviest part of one with the lightest of the other, and so on. */
function joinOpposed(a: Partial, b: Partial): Partial {
  const opposite = b.parts.toReversed()
  return toPartial(
    a.parts.map(({ items, cost }, index) => {
      const other = opposite[index] ?? { items: [], cost: 0 }
      return { items: [...items, ...other.items], cost: cost + other.cost }
    }),
  )
}

/** Swaps an item of the heaviest part for one of another part while that lowers the heavier of the two; each swap lowers the sum of squares, so it ends. */
function swapPairs(given: readonly Part[], costs: readonly number[]): Part[] {
  let parts = [...given]
  for (;;) {
    const heaviest = parts.reduce((best, part) => (part.cost > best.cost ? part : best))
    let best: { readonly other: Part; readonly out: number; readonly into: number; readonly top: number } | undefined
    for (const other of parts) {
      if (other === heaviest) continue
      for (const out of heaviest.items) {
        for (const into of other.items) {
          const change = (costs[out] ?? 0) - (costs[into] ?? 0)
          const top = Math.max(heaviest.cost - change, other.cost + change)
          if (top < (best?.top ?? heaviest.cost) - 1e-9 * heaviest.cost) best = { other, out, into, top }
        }
      }
    }
    if (best === undefined) return parts
    const { other, out, into } = best
    parts = parts.map((part) => {
      if (part === heaviest) return exchange(part, out, into, costs)
      return part === other ? exchange(part, into, out, costs) : part
    })
  }
}

function exchange({ items }: Part, out: number, into: number, costs: readonly number[]): Part {
  const changed = items.map((item) => (item === out ? into : item))
  return { items: changed, cost: changed.reduce((sum, item) => sum + (costs[item] ?? 0), 0) }
}
