import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { expertRows, type FakeEngine, logprobOf, startFakeEngine } from '../__fixtures__/fake-engine.ts'
import { GenerateClient, type GenerateRequest } from './generate-client.ts'

let engine: FakeEngine
let client: GenerateClient
beforeEach(async () => {
  engine = await startFakeEngine()
  client = new GenerateClient()
})
afterEach(async () => {
  await client.close()
  await engine.close()
})

const request = (more: Partial<GenerateRequest> = {}): GenerateRequest => ({
  baseUrl: engine.url,
  headers: { 'x-session-id': 's1' },
  model: 'm',
  tokenIds: Uint32Array.of(5, 6, 7),
  sampling: { temperature: 1, stop_token_ids: [2], max_tokens: 16 },
  top: { cache_salt: '9' },
  fallbackVersion: 9,
  wantsRoutedExperts: false,
  ...more,
})
const forever = { signal: new AbortController().signal, deadline: null }
const within = (ms: number) => ({ signal: new AbortController().signal, deadline: performance.now() + ms })
const failing = (type: string, message: RegExp) => expect.objectContaining({ type, message: expect.stringMatching(message) })

describe('an answer', () => {
  test.each([
    ['binary', [3, 4, 3], [3, 3, 3]],
    ['vllm-0.32', [3, 3, 3], [3, 3, 3]],
    ['vllm-0.22', [9, 9, 9], [9, 9, 9]],
  ] as const)('of the dialect %s has ids, log-probabilities, versions and experts', async (dialect, versions, contextVersions) => {
    engine.options = { dialect, experts: { layers: 2, topK: 2 } }
    const answer = await client.generate(request({ wantsRoutedExperts: true }), forever)
    expect([...answer.completionIds]).toEqual([100, 101, 2])
    expect([...answer.logprobs]).toEqual([100, 101, 2].map(logprobOf))
    expect([...answer.versions]).toEqual(versions)
    expect([...answer.contextVersionsMin]).toEqual(contextVersions)
    expect(answer.finishReason).toBe('stop')
    expect(answer.routedExperts?.shape).toEqual([5, 2, 2])
    expect([...(answer.routedExperts?.data ?? [])]).toEqual([...expertRows([5, 6, 7, 100, 101, 2], { layers: 2, topK: 2 })])
  })

  it('is asked for with the salt at the top, the headers, and a path without /v1', async () => {
    for (const baseUrl of [engine.url, `${engine.url}/`, `${engine.url}/v1`, `${engine.url}/v1/`])
      await client.generate(request({ baseUrl }), forever)
    expect(engine.requests).toHaveLength(4)
    for (const { body, headers } of engine.requests) {
      expect(body).toEqual({ model: 'm', token_ids: [5, 6, 7], sampling_params: request().sampling, cache_salt: '9' })
      expect(headers).toMatchObject({ 'x-session-id': 's1', accept: expect.stringContaining('application/x-trilithon-generate') })
    }
  })

  it('takes versions of tokens and of their context by ranges, and a version without a number as none', async () => {
    const choice = {
      token_ids: [1, 4, 2],
      finish_reason: 'stop',
      logprobs: { content: [{ logprob: -1 }, { logprob: -2 }, { logprob: 0 }] },
      weight_versions: [
        { version: 'default', start: 0, end: 1 },
        { version: '12', start: 1, end: 3 },
      ],
      context_versions: [{ version: 8, start: 2, end: 3 }],
    }
    engine.troubles.push({ answer: { choices: [choice] } })
    const answer = await client.generate(request(), forever)
    expect([...answer.versions]).toEqual([9, 12, 12])
    expect([...answer.contextVersionsMin]).toEqual([9, 9, 8])
  })

  it('without experts where some were asked for is none, and so are rows of another number', async () => {
    await expect(client.generate(request({ wantsRoutedExperts: true }), forever)).rejects.toEqual(
      failing('EngineAnswerInvalid', /sent none/),
    )
    const choice = { token_ids: [2], finish_reason: 'stop', logprobs: { content: [{ logprob: -1 }] } }
    engine.troubles.push({ answer: { choices: [{ ...choice, routed_experts: { data: 'AAAA', shape: [1, 1, 3], start: 2 } }] } })
    await expect(client.generate(request({ wantsRoutedExperts: true }), forever)).rejects.toEqual(
      failing('EngineAnswerInvalid', /begin at row 2/),
    )
    engine.troubles.push({ answer: { choices: [{ ...choice, routed_experts: { data: 'AAAA', shape: [1, 1, 3], start: 0 } }] } })
    await expect(client.generate(request({ wantsRoutedExperts: true }), forever)).rejects.toEqual(
      failing('EngineAnswerInvalid', /1 rows .* 3 tokens/),
    )
  })

  const good = { token_ids: [1, 2], finish_reason: 'stop', logprobs: { content: [{ logprob: -1 }, { logprob: -2 }] } }
  test.each([
    ['no choice', { choices: [] }, /choices/],
    ['fewer log-probabilities than tokens', { choices: [{ ...good, token_ids: [1, 2, 3] }] }, /2 log-probabilities for 3/],
    ['a log-probability above 0', { choices: [{ ...good, logprobs: { content: [{ logprob: -1 }, { logprob: 0.5 }] } }] }, /token 1 is 0.5/],
    ['no log-probabilities', { choices: [{ ...good, logprobs: null }] }, /logprobs/],
    ['an unknown end', { choices: [{ ...good, finish_reason: null }] }, /finish_reason is null/],
    ['no token', { choices: [{ ...good, token_ids: [], logprobs: { content: [] } }] }, /no token/],
    ['experts that are no file', { choices: [{ ...good, routed_experts: 'AAAA' }] }, /no .npy/],
  ])('with %s is refused', async (_, answer, message) => {
    engine.troubles.push({ answer })
    await expect(client.generate(request(), forever)).rejects.toEqual(failing('EngineAnswerInvalid', message))
  })
})

describe('an engine in trouble', () => {
  it('that breaks connections, cuts answers or is not ready is asked again', async () => {
    engine.troubles.push('disconnect', 503, 'cut', 429, 500)
    const outages: (string | null)[] = []
    const answer = await client.generate(request(), { ...within(20_000), onOutage: (reason) => outages.push(reason) })
    expect([...answer.completionIds]).toEqual([100, 101, 2])
    expect(engine.requests).toHaveLength(6)
    expect(outages).toHaveLength(6)
    expect(outages[1]).toMatch(/503/)
    expect(outages.at(-1)).toBeNull()
  })

  it('that stays away is unavailable by the deadline, and not after it', async () => {
    engine.outage = 503
    const began = performance.now()
    await expect(client.generate(request(), within(700))).rejects.toEqual(
      failing('EngineUnavailable', /did not answer \d+ times, last: 503/),
    )
    expect(performance.now() - began).toBeLessThan(705)
    expect(performance.now() - began).toBeGreaterThan(400)
  })

  it('that nobody started is unavailable too', async () => {
    const gone = await startFakeEngine()
    await gone.close()
    await expect(client.generate(request({ baseUrl: gone.url }), within(300))).rejects.toEqual(failing('EngineUnavailable', /ECONNREFUSED/))
  })

  it('that refuses is not asked again', async () => {
    engine.troubles.push({ status: 400, body: '{"error":{"message":"Token id 99999 is out of vocabulary","code":400}}' })
    await expect(client.generate(request(), forever)).rejects.toEqual(failing('EngineRejected', /^400 Token id 99999 is out/))
    engine.troubles.push({ status: 404, body: '{"detail":"no such model"}' })
    await expect(client.generate(request(), forever)).rejects.toEqual(failing('EngineRejected', /^404 no such model/))
    expect(engine.requests).toHaveLength(2)
  })

  it('that finds the prompt too long ends the conversation', async () => {
    engine.troubles.push({
      status: 400,
      body: '{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length"}}',
    })
    await expect(client.generate(request(), forever)).rejects.toEqual(expect.objectContaining({ reason: 'prompt_too_long' }))
  })

  it('is left at once when nobody waits, and hears of it', async () => {
    engine.troubles.push('hang')
    const controller = new AbortController()
    const waiting = client.generate(request(), { signal: controller.signal, deadline: null })
    setTimeout(() => controller.abort(new Error('enough')), 50)
    await expect(waiting).rejects.toThrow('enough')
    await expect.poll(() => engine.aborted()).toBe(1)
  })
})
