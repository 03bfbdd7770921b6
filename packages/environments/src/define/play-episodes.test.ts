import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { alphabetSortEnvironment, alphabetSortTask, sortedWords } from '../alphabet-sort/alphabet-sort.ts'
import { reverseText, reverseTextTask } from '../reverse-text/reverse-text.ts'
import { reverseTextEnvironment } from '../reverse-text/reverse-text-environment.ts'
import { defineEnvironment } from './define-environment.ts'
import { playEpisodes } from './play-episodes.ts'

describe('played episodes', () => {
  it('of reverse-text are right where the letters come back in reverse, and held out for evaluations', async () => {
    const right = await playEpisodes(reverseTextEnvironment, {
      index: 3,
      answer: ([message]) => reverseText((message?.content ?? '').slice(0, -1)),
    })
    expect(right).toEqual([{ reward: 1, metrics: { exact: 1 }, stopCondition: 'completed', isTruncated: false, taskId: 'train/3' }])
    let asked = ''
    await playEpisodes(reverseTextEnvironment, {
      split: 'eval',
      index: 3,
      seed: 2,
      answer: ([message]) => (asked = message?.content ?? ''),
    })
    expect(asked).toBe(reverseTextTask('held-out', 2, 3).prompt)
    const own = await playEpisodes(reverseTextEnvironment, {
      args: { seed: 9 },
      seed: 2,
      answer: ([message]) => (asked = message?.content ?? ''),
    })
    expect([own[0]?.metrics.exact, asked]).toEqual([0, reverseTextTask('train', 9, 0).prompt])
  })

  it('of alphabet-sort are asked for in three turns, in either style', async () => {
    const { words } = alphabetSortTask('train', 4, 5)
    for (const style of ['bare', 'english']) {
      const asked: string[] = []
      const [played] = await playEpisodes(alphabetSortEnvironment, {
        ...{ args: { style }, index: 5, seed: 4 },
        answer(messages) {
          asked.push(messages.at(-1)?.content ?? '')
          return sortedWords(words, asked.length - 1).join(',')
        },
      })
      expect(played).toMatchObject({ reward: 1, metrics: { exact: 1 } })
      expect(asked).toHaveLength(3)
      for (const [turn, text] of asked.entries()) expect(text).toContain(words[turn]?.join(','))
    }
  })

  it('see the whole conversation, and groups know their members', async () => {
    const seen: string[][] = []
    const group = defineEnvironment({
      ...{ name: 'test', args: z.strictObject({}), scoring: 'group' as const },
      dataset: () => ({ size: { train: 1, eval: 1 }, task: () => ({}) }),
      async *episode() {
        yield 'a'
        yield [{ role: 'tool', content: 'b' }]
      },
      score: (episodes) => episodes.map(({ answers }) => answers.length),
    })
    const played = await playEpisodes(group, {
      count: 2,
      answer(messages, episode) {
        seen.push(messages.map(({ role, content }) => `${role}:${content}`))
        return `e${episode}`
      },
    })
    expect(played.map(({ reward }) => reward)).toEqual([2, 2])
    expect(seen).toContainEqual(['user:a', 'assistant:e1', 'tool:b'])
    expect((await playEpisodes(group, { index: 1, answer: () => '' }))[0]).toMatchObject({ reward: null, error: { type: 'TaskInvalid' } })
  })

  it('refuse what is no environment', async () => {
    await expect(playEpisodes({}, { answer: () => '' })).rejects.toMatchObject({ code: 'ENVIRONMENT_INVALID' })
  })
})
