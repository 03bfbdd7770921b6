import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '@trilithon/core'
import { createEnvironmentPool, type EpisodeRequest } from '@trilithon/environments'
import { type CharTokenizer, createCharTokenizer } from '@trilithon/renderers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTurnRenderer } from './create-turn-renderer.ts'
import { environmentWorkerEntry } from './entry.ts'

const reverse = createCharTokenizer('abcdefghijklmnop')
const sort = createCharTokenizer('abcdefghijklmnop,')

/** The whole conversation as text; what it answers follows from that alone. */
type Answerer = (conversation: string) => string

let folder = ''
let server: Server
let answer: { tokenizer: CharTokenizer['tokenizer']; of: Answerer } = { tokenizer: reverse.tokenizer, of: () => '' }
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-worker-'))
  for (const [name, text] of Object.entries(reverse.files)) writeFileSync(join(folder, name), text)
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { token_ids } = JSON.parse(Buffer.concat(chunks).toString()) as { token_ids: number[] }
    const ids = answer.tokenizer.encode(`${answer.of(answer.tokenizer.decode(token_ids))}<eos>`)
    const choice = { index: 0, token_ids: ids, finish_reason: 'stop', logprobs: { content: ids.map(() => ({ logprob: -0.5 })) } }
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ choices: [choice] }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  rmSync(folder, { recursive: true })
})

const episode = (index: number, split: 'train' | 'eval' = 'train'): EpisodeRequest => ({
  ...{ rolloutId: `r${index}`, groupId: 'g', taskIndex: index, split, seed: 5, headers: {}, salt: '0', session: 's', model: 'm' },
  ...{ lease: { id: 'l', deadlineMs: 10_000 }, sampling: { temperature: 1 }, maxSeqLen: 256, apiKeyVar: null, wantsRoutedExperts: false },
  baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
})

async function rewards(id: string, tokenizer: CharTokenizer, of: Answerer) {
  const where = mkdtempSync(join(folder, 'tokenizer-'))
  for (const [name, text] of Object.entries(tokenizer.files)) writeFileSync(join(where, name), text)
  answer = { tokenizer: tokenizer.tokenizer, of }
  const pool = await createEnvironmentPool({
    ...{ id, workers: 1, workerEntry: { file: environmentWorkerEntry }, log: silentLogger, maxRetries: 0 },
    renderer: { config: { name: 'default' }, tokenizer: where, model: where },
  })
  try {
    const episodes = [0, 1, 2, 3].flatMap((index) => [episode(index), episode(index, 'eval')])
    return await Promise.all(episodes.map((one) => pool.run(one, { signal: new AbortController().signal })))
  } finally {
    await pool.dispose()
  }
}

describe('an environment worker with the renderers', () => {
  it('runs reverse-text over the tokeniser of the example: one turn, prompt `abcd=`, an answer up to the end token', async () => {
    const results = await rewards('reverse-text', reverse, (text) => [...text.slice(0, -1)].reverse().join(''))
    for (const { reward, metrics, turns } of results) {
      expect([reward, metrics]).toEqual([1, { exact: 1 }])
      expect(turns).toHaveLength(1)
      const prompt = reverse.tokenizer.decode(turns[0]?.promptIds ?? [])
      expect(prompt).toMatch(/^[a-p]{4,8}=$/)
      expect(reverse.tokenizer.decode(turns[0]?.completionIds ?? [])).toBe(`${[...prompt.slice(0, -1)].reverse().join('')}<eos>`)
    }
    const wrong = await rewards('reverse-text', reverse, (text) => text.slice(0, -1))
    for (const { reward } of wrong) expect(reward).toBeLessThan(1)
  })

  it('runs alphabet-sort: three turns, each prompt the one before with its answer and the new words', async () => {
    const sorted: Answerer = (text) => {
      // All lists of words that stand before an equals sign; answers stand before an end token.
      const words = text
        .split('=')
        .flatMap((part) => (part.split('<eos>').at(-1) ?? '').split(','))
        .filter((word) => word !== '')
      return words.sort().join(',')
    }
    const results = await rewards('alphabet-sort', sort, sorted)
    for (const { reward, turns, extensionBreaks } of results) {
      expect([reward, turns.length, extensionBreaks]).toEqual([1, 3, 0])
      for (const [at, turn] of turns.entries()) {
        const before = turns[at - 1]
        const history = before === undefined ? [] : [...before.promptIds, ...before.completionIds]
        expect([...turn.promptIds.subarray(0, history.length)]).toEqual(history)
        expect(sort.tokenizer.decode(turn.promptIds.subarray(history.length))).toMatch(/^[a-p]{1,3}(,[a-p]{1,3})?=$/)
      }
    }
    // The first turn alone is right: a third of the reward, and of the others what happens to stand at its place.
    const first = await rewards('alphabet-sort', sort, (text) => (text.includes('<eos>') ? '' : sorted(text)))
    for (const { reward } of first) expect(reward).toBeCloseTo(1 / 3, 12)
  })

  it('tells before the first episode that a tokeniser is not there', async () => {
    const starting = createEnvironmentPool({
      ...{ id: 'reverse-text', workers: 1, workerEntry: { file: environmentWorkerEntry }, log: silentLogger, maxRetries: 0 },
      renderer: { config: null, tokenizer: join(folder, 'nowhere'), model: 'x' },
    })
    await expect(starting).rejects.toMatchObject({
      code: 'TOKENIZER_INVALID',
      message: expect.stringMatching(/tokenizer.json: the file is missing/),
    })
  })
})

describe('a renderer of turns', () => {
  it('takes a chat template in place of the tokeniser’s, and says why it cannot continue', () => {
    const text =
      "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}={% endif %}"
    const renderer = createTurnRenderer({ config: { name: 'default' }, tokenizer: folder, model: 'x', chatTemplate: { text, file: 'own' } })
    const prompt = renderer.render([{ role: 'user', content: 'ab' }])
    expect(renderer.decode(prompt.ids)).toBe('ab=')
    const next = renderer.extend(prompt, Uint32Array.of(5, 4, 2), [{ role: 'user', content: 'c' }])
    expect(renderer.decode(next.prompt?.ids ?? Uint32Array.of())).toBe('ab=ba<eos>c=')
    expect(renderer.extend(prompt, Uint32Array.of(5), [{ role: 'system', content: 'c' }]).broken).toMatch(/system/)
    expect(renderer.stopIds).toEqual([2])
  })
})
