import { describe, expect, it } from 'vitest'
import { alphabetSortTask, sortedWords, wordsInPlace } from './alphabet-sort.ts'
import { alphabetSortRows } from './alphabet-sort-rows.ts'

const args = { min_words: 2, max_words: 2, min_length: 1, max_length: 2 } as const

describe('rows for a warm start', () => {
  it('are conversations about the tasks of the environment, whose answers have the right words', () => {
    for (const [index, { messages }] of alphabetSortRows({ seed: 3, count: 50, args }).entries()) {
      const { words } = alphabetSortTask('train', 3, index, args)
      expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant', 'user', 'assistant'])
      for (const turn of [0, 1, 2]) {
        expect(messages[2 * turn]?.content).toBe(`${words[turn]?.join(',')}=`)
        expect(messages[2 * turn + 1]?.content.split(',').sort()).toEqual(sortedWords(words, turn))
      }
    }
  })

  it('have every order as often as chance has it, in no dependence on the alphabet', () => {
    const rows = alphabetSortRows({ seed: 1, count: 3000, args })
    // Of n words in a random order one is in its place on average; the variance of that is 1.
    for (const turn of [0, 1, 2]) {
      const words = 2 * (turn + 1)
      const inPlace = rows.map(({ messages }) => {
        const answer = messages[2 * turn + 1]?.content ?? ''
        return words * wordsInPlace(answer, answer.split(',').sort())
      })
      const mean = inPlace.reduce((sum, count) => sum + count, 0) / rows.length
      expect(Math.abs(mean - 1)).toBeLessThan(5 / Math.sqrt(rows.length))
    }
    const firstTwo = rows.filter(({ messages }) => messages[1]?.content === messages[0]?.content.slice(0, -1)).length
    expect(Math.abs(firstTwo / rows.length - 0.5)).toBeLessThan(2.5 / Math.sqrt(rows.length))
  })

  it('follow from seed and split', () => {
    const of = (seed: number, split: 'train' | 'eval') => alphabetSortRows({ seed, count: 20, split, args })
    expect(of(1, 'train')).toEqual(of(1, 'train'))
    expect(of(2, 'train')).not.toEqual(of(1, 'train'))
    expect(of(1, 'eval')).not.toEqual(of(1, 'train'))
    expect(of(1, 'train')[0]?.messages[1]).not.toEqual(of(1, 'eval')[0]?.messages[1])
  })

  it('are in the words of the style', () => {
    const [row] = alphabetSortRows({ seed: 1, count: 1, args: { ...args, style: 'english' } })
    expect(row?.messages[2]?.content).toMatch(/^Add these words/)
  })
})
