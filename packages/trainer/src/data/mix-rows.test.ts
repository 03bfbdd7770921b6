import { describe, expect, it } from 'vitest'
import { type MixRowsOptions, mixRows } from './mix-rows.ts'
import type { RowSource } from './row-source.ts'

let closed: string[] = []
const source = (name: string, count: number): RowSource => ({
  count,
  place: (row) => ({ file: name, line: row + 1 }),
  read: (row) => `${name}${row}`,
  close: () => void closed.push(name),
})
const mixed = (counts: readonly number[], options: Partial<MixRowsOptions>) => {
  const rows = mixRows(
    counts.map((count, index) => source('abc'[index] ?? '', count)),
    { probabilities: null, stoppingStrategy: 'all_exhausted', seed: 0, ...options },
  )
  return { rows, values: Array.from({ length: rows.count }, (_, row) => rows.read(row) as string) }
}
const countOf = (values: readonly string[], name: string) => values.filter((value) => value.startsWith(name)).length

describe('rows of several sources', () => {
  it('follow each other where no shares are given', () => {
    closed = []
    const { rows, values } = mixed([2, 1], {})
    expect(values).toEqual(['a0', 'a1', 'b0'])
    expect(rows.place(2)).toEqual({ file: 'b', line: 1 })
    rows.close()
    expect(closed).toEqual(['a', 'b'])
  })

  it('are drawn by their shares, each source in its order', () => {
    const { values } = mixed([4000, 4000], { probabilities: [0.2, 0.8], stoppingStrategy: 'first_exhausted' })
    expect(countOf(values, 'b')).toBe(4000)
    expect(countOf(values, 'a') / values.length).toBeCloseTo(0.2, 1)
    for (const name of ['a', 'b'])
      expect(values.filter((value) => value.startsWith(name))).toEqual(
        Array.from({ length: countOf(values, name) }, (_, row) => `${name}${row}`),
      )
  })

  it('begin again until the last source is used up', () => {
    const { values } = mixed([3, 50], { probabilities: [0.5, 0.5] })
    expect(new Set(values).size).toBe(53)
    expect(countOf(values, 'b')).toBe(50)
    expect(countOf(values, 'a')).toBeGreaterThan(20)
    expect(values.filter((value) => value.startsWith('a')).slice(0, 4)).toEqual(['a0', 'a1', 'a2', 'a0'])
  })

  it('are the same for the same seed, and others for another', () => {
    const options = { probabilities: [0.5, 0.5] }
    expect(mixed([20, 20], options).values).toEqual(mixed([20, 20], options).values)
    expect(mixed([20, 20], { ...options, seed: 1 }).values).not.toEqual(mixed([20, 20], options).values)
  })

  it('of a source whose share is 0 are never drawn, and never waited for', () => {
    expect(mixed([3, 5], { probabilities: [1, 0] }).values).toEqual(['a0', 'a1', 'a2'])
  })
})
