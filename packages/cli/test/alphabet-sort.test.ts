/** The start of examples/alphabet-sort: its data, and that what is committed is what the script says. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { alphabetSortEnvironment, alphabetSortTask, playEpisodes } from '@trilithon/environments'
import { loadModel } from '@trilithon/models'
import { createCharTokenizer, loadTokenizer } from '@trilithon/renderers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sampleAnswers } from '../src/reverse-text/sample-answers.ts'
import { runCommandLine } from '../src/run-command-line.ts'

const example = fileURLToPath(new URL('../../../examples/alphabet-sort', import.meta.url))
/** As in rl.toml and make-start.sh, which is tested below. */
const args = { min_words: 2, max_words: 2, min_length: 1, max_length: 2 } as const

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-alphabet-sort-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

async function run(...argv: readonly string[]) {
  const written = { out: '', err: '' }
  const output = (key: 'out' | 'err') => ({
    write: (text: string) => {
      written[key] += text
    },
  })
  const host = { workingDirectory: folder, environment: {}, stdout: output('out'), stderr: output('err') }
  return { status: await runCommandLine(['alphabet-sort', ...argv], host), ...written }
}

describe('alphabet-sort rows', () => {
  it('writes conversations of the arguments that it is given', async () => {
    const flags = ['--seed', '2', '--count', '20', '--args', JSON.stringify({ ...args, turns: 2 })]
    const { status, out } = await run('rows', ...flags, '--split', 'held-out', '--out', 'some/rows.jsonl')
    expect([status, out]).toEqual([0, 'wrote 20 rows to some/rows.jsonl\n'])
    const rows = readFileSync(join(folder, 'some/rows.jsonl'), 'utf8').trim().split('\n')
    expect(rows).toHaveLength(20)
    for (const [index, row] of rows.entries()) {
      const { words } = alphabetSortTask('eval', 2, index, { ...args, turns: 2 })
      const { messages } = JSON.parse(row) as { messages: { content: string }[] }
      expect([messages[0]?.content, messages[2]?.content]).toEqual(words.map((added) => `${added.join(',')}=`))
    }
  })

  it.each([
    [['--args', '{"words": 2}'], 'words'],
    [['--args', '{'], '--args'],
    [['--args', '[]'], '--args'],
    [['--args', '{"min_words": 3}'], 'max_words'],
    [['--count', '0'], '--count'],
    [['--split', 'test'], '--split'],
  ] as const)('%j is refused', async (flags, text) => {
    const { status, err } = await run('rows', '--out', 'x.jsonl', ...flags)
    expect([status, err.includes(text), err.includes('USAGE_INVALID')]).toEqual([2, true, true])
  })
})

describe('examples/alphabet-sort/start', () => {
  const read = (name: string) => readFileSync(join(example, name), 'utf8')

  it('has the configuration and the tokeniser of the script', () => {
    const script = read('make-start.sh')
    expect(read('start/config.json')).toBe(read('config.json'))
    const alphabet = /--alphabet (\S+)/.exec(script)?.[1] ?? ''
    const { files } = createCharTokenizer(alphabet)
    for (const [name, text] of Object.entries(files)) expect(read(`start/${name}`)).toBe(text)
    expect(JSON.parse(/args='(.*)'/.exec(script)?.[1] ?? '')).toEqual(args)
    const steps = /max_steps = (\d+)/.exec(read('sft.toml'))?.[1]
    expect(script.match(/step_(\d+)/g)).toEqual([`step_${steps}`, `step_${steps}`])
  })

  it('answers with the right words, in an order that is no better than chance', async () => {
    const { model } = loadModel(join(example, 'start'))
    const tokenizer = loadTokenizer(join(example, 'start'))
    const count = 100
    const tasks = Array.from({ length: count }, (_, index) => alphabetSortTask('eval', 0, index, args))
    let ids: number[][] = tasks.map(() => [])
    const texts: string[][] = tasks.map(() => [])
    try {
      for (const turn of [0, 1, 2]) {
        ids = ids.map((before, index) => [...before, ...tokenizer.encode(`${tasks[index]?.words[turn]?.join(',')}=`)])
        const stopIds = tokenizer.stopIds
        const answers = sampleAnswers(model, { prompts: ids, stopIds, maxTokens: 20, temperature: 1, seed: turn })
        for (const [index, answer] of answers.entries()) texts[index]?.push(tokenizer.decode(answer))
        ids = ids.map((before, index) => [...before, ...(answers[index] ?? []), stopIds[0] ?? 0])
      }
    } finally {
      model.dispose()
    }
    const words = texts.map((answers, index) => {
      const right = new Set(tasks[index]?.words.flat())
      return answers.flatMap((answer) => answer.split(',')).filter((word) => right.has(word)).length
    })
    // Twelve words are asked for in three turns.
    expect(words.reduce((sum, count) => sum + count, 0) / count).toBeGreaterThan(11)
    const rewards: number[] = []
    for (const [index, answers] of texts.entries()) {
      const [episode] = await playEpisodes(alphabetSortEnvironment, { args, split: 'eval', index, answer: () => answers.shift() ?? '' })
      rewards.push(Number(episode?.reward))
    }
    // Of n words in a random order one is in its place on average: (1/2 + 1/4 + 1/6) / 3 = 0.306. The standard error of this many is 0.02.
    const mean = rewards.reduce((sum, reward) => sum + reward, 0) / count
    expect(mean).toBeGreaterThan(0.2)
    expect(mean).toBeLessThan(0.4)
  })
})
