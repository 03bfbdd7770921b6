/** What an answer holds beside its tokens. */
import { createPackedContext, type Model } from '@trilithon/models'
import { scope, toArray } from '@trilithon/tensor'
import { someIds } from '@trilithon/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createEngine } from '../src/engine/create-engine.ts'
import type { Engine } from '../src/engine/engine.ts'
import { bitsOf, generate, requestOf } from './running.ts'
import { packedScores, TestFolders, tinyModel } from './tiny-models.ts'

const folders = new TestFolders()
let engine: Engine
let model: Model
beforeAll(async () => {
  engine = await createEngine({
    modelFolder: folders.model('glm_moe_dsa', 5),
    thread: 'here',
    blockSize: 4,
    maxModelLen: 64,
    prefillTokens: 6,
    routedExperts: true,
  })
  model = tinyModel('glm_moe_dsa', 5)
})
afterAll(async () => {
  await engine.dispose()
  model.dispose()
  folders.remove()
})

/** Log-probability of every token of the vocabulary behind a sequence, by the trainer's head, one target at a time. */
function distribution(ids: readonly number[], temperature: number): Float32Array {
  return scope(() => {
    const rows = Array.from({ length: 61 }, () => ids)
    const { hidden } = model.forward(rows.flat(), createPackedContext(rows.map(({ length }) => length)))
    const targets = rows.flatMap((row, id) => row.map(() => id))
    const logprobs = toArray(model.score(hidden, targets, { temperature }).logprobs) as Float32Array
    return Float32Array.from({ length: 61 }, (_, id) => logprobs[(id + 1) * ids.length - 1] as number)
  })
}

describe('log-probabilities', () => {
  test.for([0, 0.6, 1, 1.7])('temperature %d: candidates in the order of likelihood, with the bits of the head', async (temperature) => {
    const prompt = someIds(11, 61)
    const answer = await generate(engine, requestOf(prompt, { logprobs: 5, sampling: { temperature, maxTokens: 4 } }))
    for (const [index, list] of answer.candidates.entries()) {
      const expected = distribution([...prompt, ...answer.tokens.slice(0, index)], temperature || 1)
      const order = [...expected.keys()].sort((a, b) => (expected[b] as number) - (expected[a] as number) || a - b)
      const [own, ...most] = list
      expect(own?.id).toBe(answer.tokens[index])
      expect(own?.rank).toBe(order.indexOf(own?.id ?? -1) + 1)
      expect(most.map(({ id, rank }) => [id, rank])).toEqual(order.slice(0, 5).map((id, place) => [id, place + 1]))
      expect(bitsOf(list.map(({ logprob }) => logprob))).toEqual(bitsOf(list.map(({ id }) => expected[id] as number)))
      expect(bitsOf([own?.logprob ?? 0])).toEqual(bitsOf([answer.logprobs[index] as number]))
    }
  })

  // known-faults 31: after temperature, and never the log-probability divided by it; 32: of the whole vocabulary, whatever top-k and top-p leave out.
  test('they are those of the whole distribution after temperature, whatever the rules leave out', async () => {
    const prompt = someIds(9, 61, 4)
    const rules = { temperature: 0.6, topK: 3, topP: 0.5, minP: 0.2, maxTokens: 6 }
    const { tokens, logprobs } = await generate(engine, requestOf(prompt, { sampling: rules }))
    expect(bitsOf(logprobs)).toEqual(bitsOf(packedScores(model, [...prompt, ...tokens], 0.6).logprobs.slice(8)))
  })

  test('of the prompt: the token that is there, then the most likely; nothing for the first; nothing comes from the cache', async () => {
    const prompt = someIds(14, 61, 2)
    await generate(engine, requestOf(prompt))
    const { prompt: event, logprobs, tokens } = await generate(engine, requestOf(prompt, { promptLogprobs: 2, sampling: { maxTokens: 2 } }))
    const lists = event?.promptLogprobs ?? []
    expect([lists.length, lists[0], event?.cachedTokens]).toEqual([14, [], 0])
    const { logprobs: expected } = packedScores(model, [...prompt, ...tokens])
    expect(lists.slice(1).map((list) => list[0]?.id)).toEqual(prompt.slice(1))
    expect(bitsOf(lists.slice(1).map((list) => list[0]?.logprob ?? 0))).toEqual(bitsOf(expected.slice(0, 13)))
    expect(bitsOf(logprobs)).toEqual(bitsOf(expected.slice(13)))
    const third = distribution(prompt.slice(0, 3), 1)
    expect(lists[3]?.[1]?.logprob).toBe(Math.max(...third))
    expect(lists.slice(1).every((list) => list.length === 3)).toBe(true)
  })

  test('none are collected where none were asked for', async () => {
    const { candidates, prompt } = await generate(engine, requestOf([1, 2], { logprobs: null }))
    expect(candidates.every((list) => list.length === 0)).toBe(true)
    expect(prompt?.promptLogprobs).toBeNull()
  })
})

describe('sampling', () => {
  test('a token follows from seed and place, whatever runs beside it', async () => {
    const prompt = someIds(5, 61)
    const alone = await generate(engine, requestOf(prompt, { sampling: { seed: 42n } }))
    const [again, other] = await Promise.all([
      generate(engine, requestOf(prompt, { sampling: { seed: 42n } })),
      generate(engine, requestOf(prompt, { sampling: { seed: -43n } })),
      ...Array.from({ length: 5 }, (_, index) => generate(engine, requestOf(someIds(9, 61, index)))),
    ])
    expect(again.tokens).toEqual(alone.tokens)
    expect(other.tokens).not.toEqual(alone.tokens)
  })

  test('a stop token ends the answer, is part of it, and is named', async () => {
    const prompt = someIds(6, 61, 9)
    const { tokens } = await generate(engine, requestOf(prompt, { sampling: { maxTokens: 12 } }))
    const stop = tokens[4] as number
    const first = tokens.indexOf(stop)
    const stopped = await generate(engine, requestOf(prompt, { sampling: { maxTokens: 12, stopIds: [stop] } }))
    expect([stopped.tokens, stopped.end?.reason, stopped.end?.stopId]).toEqual([tokens.slice(0, first + 1), 'stop', stop])
  })

  test('before the least number of tokens none ends it, and what is chosen instead has the log-probability of the head', async () => {
    const prompt = someIds(6, 61, 9)
    const stopIds = Array.from({ length: 55 }, (_, id) => id)
    const { tokens, logprobs, end } = await generate(engine, requestOf(prompt, { sampling: { maxTokens: 9, minTokens: 5, stopIds } }))
    expect(tokens.slice(0, 5).every((id) => id >= 55)).toBe(true)
    expect(tokens.length).toBeGreaterThan(5)
    expect(end?.reason).toBe(tokens.slice(5).some((id) => id < 55) ? 'stop' : 'length')
    expect(bitsOf(logprobs)).toEqual(bitsOf(packedScores(model, [...prompt, ...tokens]).logprobs.slice(5)))
  })

  // known-faults 23 and 52.
  test('an answer ends where the model does; a prompt that fills it is refused', async () => {
    const { tokens, end } = await generate(engine, requestOf(someIds(60, 61), { sampling: { maxTokens: 100 } }))
    expect([tokens.length, end?.reason]).toEqual([4, 'length'])
    for (const length of [64, 65])
      await expect(generate(engine, requestOf(someIds(length, 61)))).rejects.toMatchObject({ code: 'REQUEST_INVALID' })
  })
})

describe('routed experts', () => {
  // known-faults 74: the last token has no row. 70 and 71: distinct ids of experts that exist.
  test.for([
    { prompt: 3, maxTokens: 2, from: 0, rows: 4 },
    { prompt: 3, maxTokens: 1, from: 0, rows: 3 },
    { prompt: 3, maxTokens: 2, from: 3, rows: 1 },
    { prompt: 13, maxTokens: 6, from: 5, rows: 13 },
    { prompt: 3, maxTokens: 1, from: 9, rows: 0 },
  ])('prompt $prompt, answer $maxTokens, from row $from: $rows rows', async ({ prompt: length, maxTokens, from, rows }) => {
    const prompt = someIds(length, 61, 3)
    const { end, tokens } = await generate(engine, requestOf(prompt, { routedExpertsFrom: from, sampling: { maxTokens } }))
    const payload = end?.routedExperts
    expect([payload?.shape, payload?.dtype]).toEqual([[rows, 2, 2], 'uint8'])
    const all = packedScores(model, [...prompt, ...tokens]).routes?.data ?? new Uint8Array(0)
    expect([...(payload?.data ?? [])]).toEqual([...all.subarray(Math.min(from, length + maxTokens - 1) * 4, (length + maxTokens - 1) * 4)])
    const pairs = Array.from({ length: rows * 2 }, (_, pair) => payload?.data.subarray(pair * 2, pair * 2 + 2) ?? [])
    expect(pairs.every(([a = 9, b = 9]) => a !== b && a < 6 && b < 6)).toBe(true)
  })

  // known-faults F73: whatever a step's buffers begin with, a longer prompt has its rows, at once or in pieces.
  test.each([1, 255, 256, 257, 500])('a prompt of %d tokens that is computed in one step', async (length) => {
    const large = await createEngine({
      modelFolder: folders.model('qwen3_moe', 5),
      ...{ thread: 'here', blockSize: 4, maxModelLen: 512, prefillTokens: 512, routedExperts: true },
    })
    const [prompt, own] = [someIds(length, 61, 13), tinyModel('qwen3_moe', 5)]
    const { end, tokens } = await generate(large, requestOf(prompt, { routedExpertsFrom: 0, sampling: { maxTokens: 2 } }))
    expect(large.stats().steps).toBe(2)
    expect(end?.routedExperts?.shape[0]).toBe(length + 1)
    const all = packedScores(own, [...prompt, ...tokens]).routes?.data
    expect([...(end?.routedExperts?.data ?? [])]).toEqual([...(all?.subarray(0, (length + 1) * 4) ?? [])])
    own.dispose()
    await large.dispose()
  })

  // known-faults F76: rows of the parts of an answer, one behind the other, are those of the whole.
  test('an answer that is aborted and gone on with, twice, has every row once', async () => {
    const prompt = someIds(9, 61, 17)
    let ids = prompt
    let rows: number[] = []
    for (const parts of [3, 4, 0]) {
      const request = requestOf(ids, {
        routedExpertsFrom: rows.length / 4,
        salt: 'parts',
        sampling: { maxTokens: prompt.length + 20 - ids.length },
      })
      const { tokens, end } = await generate(engine, request, (answer) => {
        if (parts > 0 && answer.tokens.length === parts) engine.abort([request.id])
      })
      expect(end?.reason).toBe(parts > 0 ? 'abort' : 'length')
      rows = [...rows, ...(end?.routedExperts?.data ?? [])]
      ids = [...ids, ...tokens]
      expect(rows.length / 4).toBe(ids.length - 1)
    }
    expect(ids.length).toBe(prompt.length + 20)
    expect(rows).toEqual([...(packedScores(model, ids).routes?.data.subarray(0, rows.length) ?? [])])
  })

  // known-faults 89: rows that come from the cache are those of its tokens.
  test('a prefix from the cache has its true rows', async () => {
    const prompt = someIds(18, 61, 31)
    const first = await generate(engine, requestOf(prompt, { salt: 'rows' }))
    const turn = [...prompt, ...first.tokens, 1, 2]
    const second = await generate(engine, requestOf(turn, { salt: 'rows', routedExpertsFrom: 0 }))
    expect(second.prompt?.cachedTokens).toBe(24)
    const all = packedScores(model, [...turn, ...second.tokens]).routes?.data
    expect([...(second.end?.routedExperts?.data ?? [])]).toEqual([...(all?.subarray(0, (turn.length + 7) * 4) ?? [])])
  })

  test('an aborted answer has the rows of its tokens; a request that was never computed has missing ones', async () => {
    const prompt = someIds(9, 61, 3)
    const request = requestOf(prompt, { routedExpertsFrom: 0, sampling: { maxTokens: 50 } })
    const answer = await generate(engine, request, ({ tokens }) => {
      if (tokens.length === 5) engine.abort([request.id, 'unknown'])
    })
    const rows = prompt.length + answer.tokens.length - 1
    expect([answer.end?.reason, answer.end?.routedExperts?.shape[0]]).toEqual(['abort', rows])
    const all = packedScores(model, [...prompt, ...answer.tokens]).routes?.data
    expect([...(answer.end?.routedExperts?.data ?? [])]).toEqual([...(all?.subarray(0, rows * 4) ?? [])])
    await engine.pause('keep')
    const held = requestOf(prompt, { routedExpertsFrom: 0 })
    const ending = generate(engine, held)
    engine.abort([held.id])
    const { end } = await ending
    expect([end?.routedExperts?.shape[0], end?.routedExperts?.data.every((byte) => byte === 0xff)]).toEqual([9, true])
    await engine.resume()
  })
})

test('index choices: the keys that every row chose, as the packed forward has them, also where the prompt was known', async () => {
  const prompt = someIds(21, 61, 8)
  await generate(engine, requestOf(prompt, { salt: 'choices' }))
  const { end, tokens, prompt: event } = await generate(engine, requestOf(prompt, { salt: 'choices', reportsIndexChoices: true }))
  expect(event?.cachedTokens).toBe(0)
  const rows = prompt.length + tokens.length - 1
  expect(end?.indexChoices?.shape).toEqual([rows, 2, 8])
  const expected = scope(() => {
    const ids = [...prompt, ...tokens].slice(0, rows)
    const { choices } = model.forward(ids, createPackedContext([rows]), { recordChoices: true })
    const layers = [...(choices?.values() ?? [])].map(
      ({ indices, counts }) => [toArray(indices) as Int32Array, toArray(counts) as Int32Array] as const,
    )
    return Array.from({ length: rows }, (_, row) =>
      layers.map(([indices, counts]) =>
        Array.from({ length: 8 }, (_, place) => (place < (counts[row] ?? 0) ? indices[row * 8 + place] : -1)),
      ),
    ).flat(2)
  })
  expect([...(end?.indexChoices?.data ?? [])]).toEqual(expected)
  expect(expected.filter((key) => key === -1).length).toBe(2 * (7 + 6 + 5 + 4 + 3 + 2 + 1))
})
