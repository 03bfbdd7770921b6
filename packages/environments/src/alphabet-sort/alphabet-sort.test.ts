import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { alphabetSortTask, sortedWords, splitOf, wordsInPlace } from './alphabet-sort.ts'

describe('the share of words at their right place', () => {
  it.each([
    ['ab,c,d', ['ab', 'c', 'd'], 1],
    [' ab , c,d ', ['ab', 'c', 'd'], 1],
    ['c,ab,d', ['ab', 'c', 'd'], 1 / 3],
    ['ab,c', ['ab', 'c', 'd'], 2 / 3],
    ['ab,c,d,e', ['ab', 'c', 'd'], 3 / 4],
    ['', ['ab'], 0],
    [',ab', ['ab'], 0],
    ['ab,c,d=', ['ab', 'c', 'd'], 2 / 3],
  ])('of "%s" for %j is %d', (answer, expected, share) => {
    expect(wordsInPlace(answer, expected)).toBeCloseTo(share, 12)
  })
})

describe('a task', () => {
  it('has different words of the lengths asked for, the same for the same place', () => {
    const options = { min_words: 2, max_words: 3, min_length: 2, max_length: 4, turns: 4 }
    fc.assert(
      fc.property(fc.nat(), fc.nat(), (seed, index) => {
        const task = alphabetSortTask('train', seed, index, options)
        expect(alphabetSortTask('train', seed, index, options)).toEqual(task)
        expect(task.words).toHaveLength(4)
        for (const words of task.words) expect(words.length === 2 || words.length === 3).toBe(true)
        const all = task.words.flat()
        expect(new Set(all).size).toBe(all.length)
        for (const word of all) expect(word).toMatch(/^[a-p]{2,4}$/)
      }),
    )
  })

  it('of an evaluation is none of training, whatever the seed', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), (seed, index) => {
        expect(splitOf(alphabetSortTask('train', seed, index).words)).toBe('train')
        expect(splitOf(alphabetSortTask('eval', seed, index).words)).toBe('eval')
      }),
    )
  })

  it('is answered by all words so far in their order', () => {
    const words = [['b', 'ab'], ['aa'], ['ba', 'a']]
    expect([0, 1, 2].map((turn) => sortedWords(words, turn))).toEqual([
      ['ab', 'b'],
      ['aa', 'ab', 'b'],
      ['a', 'aa', 'ab', 'b', 'ba'],
    ])
  })
})
