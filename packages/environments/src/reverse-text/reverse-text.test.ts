import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  longestCommonSubsequence,
  reverseText,
  reverseTextAlphabet,
  reverseTextReward,
  reverseTextRows,
  reverseTextTask,
  splitOf,
} from './reverse-text.ts'

const letters = fc.string({ unit: fc.constantFrom(...reverseTextAlphabet), maxLength: 9 })

/** All subsequences, the plain way. */
function subsequences(text: string): Set<string> {
  let all = new Set([''])
  for (const letter of text) all = new Set([...all, ...[...all].map((start) => start + letter)])
  return all
}

describe('the reward of reverse-text', () => {
  it.each([
    ['abcd', 'dcba', 1],
    ['abcd', '', 0],
    ['abcd', 'dcb', 6 / 7],
    ['abcd', 'abcd', 2 / 8],
    ['abcd', 'dcbadcba', 8 / 12],
    ['aabb', 'bbaa', 1],
    ['', '', 1],
  ])('of %s answered by "%s" is %d', (task, completion, reward) => {
    expect(reverseTextReward(task, completion)).toBeCloseTo(reward, 12)
  })

  it('is in 0 … 1, is 1 for the right answer only, and falls with a letter taken away', () => {
    fc.assert(
      fc.property(letters, letters, (task, completion) => {
        const reward = reverseTextReward(task, completion)
        expect(reward).toBeGreaterThanOrEqual(0)
        expect(reward).toBeLessThanOrEqual(1)
        expect(reward === 1).toBe(completion === reverseText(task))
        if (task.length > 1) expect(reverseTextReward(task, reverseText(task).slice(1))).toBeLessThan(1)
      }),
    )
  })

  it('counts the longest common subsequence as the plain way does', () => {
    fc.assert(
      fc.property(letters, letters, (a, b) => {
        const shared = [...subsequences(a)].filter((text) => subsequences(b).has(text))
        expect(longestCommonSubsequence([...a], [...b])).toBe(Math.max(...shared.map((text) => text.length)))
        expect(longestCommonSubsequence([...b], [...a])).toBe(longestCommonSubsequence([...a], [...b]))
      }),
      { numRuns: 50 },
    )
  })
})

describe('the tasks of reverse-text', () => {
  it('have 4 to 8 letters of the alphabet, every length about as often', () => {
    const lengths = new Map<number, number>()
    for (let index = 0; index < 2000; index++) {
      const task = reverseTextTask('train', 0, index)
      expect(task.letters).toMatch(/^[a-p]{4,8}$/)
      expect(task.prompt).toBe(`${task.letters}=`)
      expect(reverseText(task.answer)).toBe(task.letters)
      lengths.set(task.letters.length, (lengths.get(task.letters.length) ?? 0) + 1)
    }
    expect([...lengths.keys()].sort()).toEqual([4, 5, 6, 7, 8])
    for (const count of lengths.values()) expect(Math.abs(count - 400)).toBeLessThan(80)
  })

  it('are the same for the same seed, and others for another', () => {
    const make = (seed: number) => Array.from({ length: 50 }, (_, index) => reverseTextTask('train', seed, index).letters)
    expect(make(7)).toEqual(make(7))
    expect(make(7)).not.toEqual(make(8))
    expect(reverseTextTask('train', 0, 3).letters).toBe(make(0)[3])
  })

  it('are held out by their letters, so no seed of training meets one', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), fc.nat(), (seed, other, index) => {
        expect(splitOf(reverseTextTask('train', seed, index).letters)).toBe('train')
        expect(splitOf(reverseTextTask('held-out', other, index).letters)).toBe('held-out')
      }),
    )
  })

  it('have as rows noise in the answers alone, as often as asked', () => {
    const clean = reverseTextRows({ seed: 1, count: 500 })
    const noisy = reverseTextRows({ seed: 1, count: 500, noise: 0.7 })
    expect(noisy.map(({ prompt }) => prompt)).toEqual(clean.map(({ prompt }) => prompt))
    let same = 0
    let all = 0
    for (const [row, { completion }] of noisy.entries()) {
      const right = clean[row]?.completion ?? ''
      expect(completion).toHaveLength(right.length)
      for (const [index, letter] of [...completion].entries()) same += Number(letter === right[index])
      all += completion.length
    }
    // 0.3 stay, and 1 in 16 of the others is drawn as it was.
    expect(same / all).toBeCloseTo(0.3 + 0.7 / 16, 1)
    expect(clean[0]).toEqual({ prompt: reverseTextTask('train', 1, 0).prompt, completion: reverseTextTask('train', 1, 0).answer })
  })

  it.each([
    ['fewer than 16 letters', { alphabet: 'abc' }],
    ['a letter twice', { alphabet: 'aabcdefghijklmnop' }],
    ['the separator', { alphabet: 'abcdefghijklmno=' }],
    ['lengths that are none', { minLength: 5, maxLength: 4 }],
  ])('refuse %s', (_, options) => {
    expect(() => reverseTextTask('train', 0, 0, options)).toThrow(expect.objectContaining({ code: 'INVARIANT_BROKEN' }))
  })
})
