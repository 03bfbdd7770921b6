import { expect, test } from 'vitest'
import { lagOf } from './policy-version.ts'

test.for([
  { title: 'the oldest sampled token counts', versions: [5, 3, 4], mask: [1, 1, 1], lag: 2 },
  { title: 'tokens that were not sampled do not', versions: [0, 5, 4], mask: [0, 1, 1], lag: 1 },
  { title: 'without sampled tokens it is 0', versions: [0, 0], mask: [0, 0], lag: 0 },
  { title: 'an empty sample has none', versions: [], mask: [], lag: 0 },
  { title: 'all of the version that trains', versions: [5, 5], mask: [1, 1], lag: 0 },
])('lag: $title', ({ versions, mask, lag }) => {
  expect(lagOf(5, versions, mask)).toBe(lag)
  expect(lagOf(5, Uint32Array.from(versions), Uint8Array.from(mask))).toBe(lag)
})
