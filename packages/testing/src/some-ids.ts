/** Token ids without a pattern, below `vocabSize`: equal arguments give equal ids. */
export function someIds(count: number, vocabSize: number, seed = 1): number[] {
  const ids: number[] = []
  let state = seed
  for (let index = 0; index < count; index++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    ids.push(Math.floor((state / 2 ** 32) * vocabSize))
  }
  return ids
}
