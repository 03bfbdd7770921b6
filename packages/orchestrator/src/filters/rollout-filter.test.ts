import type { Turn } from '@trilithon/core'
import { describe, expect, it } from 'vitest'
import { PostBatchFilters, PreBatchFilters } from '../configuration/filter-table.ts'
import { applyFilters, createFilters, detect } from './rollout-filter.ts'

const turn = (ids: readonly number[], logprobs: readonly number[]): Turn => ({
  promptIds: Uint32Array.of(1),
  completionIds: Uint32Array.from(ids),
  logprobs: Float32Array.from(logprobs),
  versions: new Uint32Array(ids.length),
  contextVersionsMin: new Uint32Array(ids.length),
  temperature: 1,
  finishReason: 'stop',
})
const vocabSize = 1000
// -ln(1000) - 2 = -8.9078
const gibberish = { type: 'gibberish', enforce: true, token_id_threshold: 900, logprob_offset: 2 } as const
const repetition = { type: 'repetition', enforce: true, window: 3, prob_threshold: 0.99 } as const
const zero = { type: 'zero_advantage', enforce: true } as const

const found = (table: typeof gibberish | typeof repetition, turns: readonly Turn[]) => detect(createFilters([table], vocabSize), turns)[0]

describe('filters', () => {
  it.each([
    ['a rare and unlikely token', [turn([5, 901], [-1, -8.91])], true],
    ['a rare token that is likely enough', [turn([901], [-8.9])], false],
    ['an unlikely token that is not rare', [turn([900], [-20])], false],
    ['one in a later turn', [turn([1], [0]), turn([950], [-9])], true],
  ])('gibberish: %s', (_, turns, expected) => expect(found(gibberish, turns)).toBe(expected))

  // ln(0.99) = -0.01005
  it.each([
    ['a run of the window', [turn([1, 1, 1], [0, -0.01, -0.0001])], true],
    ['one short of it', [turn([1, 1], [0, 0])], false],
    ['a run that is broken', [turn([1, 1, 1, 1], [0, 0, -0.02, 0])], false],
    ['a run over turns', [turn([1, 1], [-1, 0]), turn([1, 1], [0, 0])], true],
  ])('repetition: %s', (_, turns, expected) => expect(found(repetition, turns)).toBe(expected))

  it('the first that hits wins, and later ones say nothing', () => {
    const filters = createFilters([gibberish, repetition, zero], vocabSize)
    expect(applyFilters(filters, [true, true, false], 0)).toEqual({
      isFiltered: true,
      hits: { gibberish: true, repetition: false, zero_advantage: false },
    })
  })

  it('one that is not enforced counts, and shadows those behind it', () => {
    const filters = createFilters([{ ...gibberish, enforce: false }, zero], vocabSize)
    expect(applyFilters(filters, [true, false], 0)).toEqual({ isFiltered: false, hits: { gibberish: true, zero_advantage: false } })
  })

  it('zero advantage is exactly zero', () => {
    const filters = createFilters([zero], vocabSize)
    expect(applyFilters(filters, [false], 0).isFiltered).toBe(true)
    expect(applyFilters(filters, [false], 1e-300).isFiltered).toBe(false)
  })

  it('defaults only count before the batch, and drop groups without a difference after it', () => {
    const enforced = (tables: typeof PreBatchFilters | typeof PostBatchFilters) =>
      tables.parse(undefined).map(({ type, enforce }) => [type, enforce])
    expect(enforced(PreBatchFilters)).toEqual([
      ['gibberish', false],
      ['repetition', false],
      ['zero_advantage', false],
    ])
    expect(enforced(PostBatchFilters)).toEqual([
      ['gibberish', false],
      ['repetition', false],
      ['zero_advantage', true],
    ])
  })
})
