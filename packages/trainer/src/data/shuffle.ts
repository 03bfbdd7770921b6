import { CounterRandom } from '@trilithon/tensor'

/** Order of the rows of one pass: a function of seed and pass alone, so a resumed run finds the same. Fisher and Yates. */
export function shuffledOrder(rows: number, seed: number, epoch: number): Uint32Array {
  const order = Uint32Array.from({ length: rows }, (_, row) => row)
  const random = new CounterRandom(Math.abs(seed), `data/${Math.sign(seed)}/${epoch}`)
  for (let last = rows - 1; last > 0; last--) {
    const other = Math.floor(random.uniform(last) * (last + 1))
    const kept = order[last] ?? 0
    order[last] = order[other] ?? 0
    order[other] = kept
  }
  return order
}
