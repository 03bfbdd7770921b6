import { routedLayout } from '@trilithon/core'
import { afterEach, describe, expect, it } from 'vitest'
import { fakeRow, fakeToken } from '../__fixtures__/fake-engine.ts'
import { type FakeService, startFake } from '../__fixtures__/start-fake.ts'
import { binaryMediaType } from './binary-answer.ts'
import { versionSpans } from './generate-answer.ts'
import { numpyFile } from './numpy-file.ts'

let service: FakeService | undefined
afterEach(async () => {
  await service?.close()
  service = undefined
})
// Bodies of answers are looked into freely here.
// biome-ignore lint/suspicious/noExplicitAny: what is wrong in an answer shows as a failed expectation
type Answer = Record<string, any>
const layout = routedLayout({ experts: 8, layers: 4, topK: 2 })
const generate = '/inference/v1/generate'
const json = async (response: Response | Promise<Response>) => (await response).json() as Promise<Answer>

describe('a .npy file', () => {
  it('begins as the recorded one: 73 rows, 4 layers, 2 experts, bytes', () => {
    const file = numpyFile(new Uint8Array(73 * 4 * 2), [73, 4, 2], 'uint8')
    // serving.md A8: base64 of 952 characters that begins with this.
    expect(file.toString('base64')).toHaveLength(952)
    expect(file.toString('base64').startsWith('k05VTVBZAQB2AHsnZGVzY3In')).toBe(true)
    expect(file.readUInt16LE(8)).toBe(0x76)
    expect(file.subarray(10, 128).toString('latin1')).toMatch(/^\{'descr': '\|u1', 'fortran_order': False, 'shape': \(73, 4, 2\), \} +\n$/)
  })

  it('has an element size, a list of one dimension, and a header of a multiple of 64 bytes for any shape', () => {
    for (const [shape, dtype, text] of [
      [[3], 'uint16', "'<u2'"],
      [[1, 2, 3], 'int32', "'<i4'"],
      [[100_000, 78, 8], 'uint8', "'|u1'"],
    ] as const) {
      const file = numpyFile(new Uint8Array(0), shape, dtype)
      expect(file.byteLength % 64).toBe(0)
      expect(file.toString('latin1')).toContain(text)
      expect(file.toString('latin1')).toContain(shape.length === 1 ? '(3,)' : `(${shape.join(', ')})`)
    }
  })
})

describe('routed experts', () => {
  it('are a .npy in base64 with every row but that of the last token, from the row that was asked for', async () => {
    service = await startFake({ routedLayout: layout }, { returnsRoutedExperts: true })
    for (const [from, rows] of [
      [0, 73],
      [64, 9],
    ] as const) {
      const token_ids = Array.from({ length: 70 }, (_, index) => index)
      const answer = await json(
        service.post(generate, { token_ids, sampling_params: { max_tokens: 4, routed_experts_prompt_start: from } }),
      )
      const file = Buffer.from(answer.choices[0].routed_experts, 'base64')
      expect(file.toString('latin1')).toContain(`(${rows}, 4, 2)`)
      expect([...file.subarray(128)]).toEqual(Array.from({ length: rows }, (_, row) => fakeRow(from + row, layout)).flat())
    }
  })

  it('are null where the server does not return them', async () => {
    service = await startFake({ routedLayout: layout })
    const answer = await json(service.post(generate, { token_ids: [1], sampling_params: { max_tokens: 2 } }))
    expect(answer.choices[0].routed_experts).toBeNull()
  })

  it('come with the last chunk of a stream alone', async () => {
    service = await startFake({ routedLayout: layout }, { returnsRoutedExperts: true })
    const text = await (await service.post(generate, { token_ids: [1], sampling_params: { max_tokens: 3 }, stream: true })).text()
    const chunks = text.split('\n\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))
    expect(chunks.map(({ choices }) => choices[0].routed_experts !== null)).toEqual([...chunks.slice(1).map(() => false), true])
  })
})

describe('the binary answer', () => {
  const ask = (body: object) =>
    service?.post(generate, body, { headers: { 'content-type': 'application/json', accept: binaryMediaType } }) as Promise<Response>

  it('has the same tokens, log-probabilities, versions and experts as the JSON one', async () => {
    service = await startFake({ routedLayout: layout }, { returnsRoutedExperts: true })
    const body = {
      token_ids: [5, 6, 7],
      sampling_params: { n: 3, max_tokens: 9, seed: 11, logprobs: 1, extra_args: { return_index_choices: true } },
    }
    const plain = await json(service.post(generate, body))
    const response = await ask(body)
    expect(response.headers.get('content-type')).toBe(binaryMediaType)
    const bytes = Buffer.from(await response.arrayBuffer())
    const length = bytes.readUInt32LE(0)
    const answer = JSON.parse(bytes.subarray(4, 4 + length).toString('utf8'))
    const rows = bytes.subarray(4 + length)
    expect((4 + length) % 16).toBe(0)
    expect(Object.keys(answer)).toEqual(Object.keys(plain))
    for (const [index, choice] of answer.choices.entries()) {
      const theirs = plain.choices[index]
      const { offset, count } = choice.tokens
      const token = (at: number) => rows.subarray(offset + at * 16, offset + at * 16 + 16)
      const places = Array.from({ length: count }, (_, at) => at)
      expect(places.map((at) => token(at).readUInt32LE(0))).toEqual(theirs.token_ids)
      expect(places.map((at) => token(at).readFloatLE(4))).toEqual(
        theirs.logprobs.content.map(({ logprob }: { logprob: number }) => logprob),
      )
      expect(versionSpans(places.map((at) => token(at).readUInt32LE(8)))).toEqual(theirs.weight_versions)
      expect(versionSpans(places.map((at) => token(at).readUInt32LE(12)))).toEqual(theirs.context_versions)
      const { routed_experts: experts, index_choices: keys } = choice
      expect(rows.subarray(experts.offset, experts.offset + experts.bytes)).toEqual(
        Buffer.from(theirs.routed_experts, 'base64').subarray(128),
      )
      expect(experts).toMatchObject({ shape: [11, 4, 2], dtype: 'uint8', bytes: 88 })
      expect(rows.subarray(keys.offset, keys.offset + keys.bytes)).toEqual(Buffer.from(theirs.index_choices, 'base64').subarray(128))
      for (const bulk of ['token_ids', 'logprobs', 'weight_versions', 'context_versions']) expect(choice).not.toHaveProperty(bulk)
    }
  })

  it('has log-probabilities without being asked, and no experts where there are none', async () => {
    service = await startFake()
    const bytes = Buffer.from(await (await ask({ token_ids: [5], sampling_params: { max_tokens: 2 } })).arrayBuffer())
    const length = bytes.readUInt32LE(0)
    const [choice] = JSON.parse(bytes.subarray(4, 4 + length).toString('utf8')).choices
    expect(choice.routed_experts).toBeNull()
    expect(bytes.readFloatLE(4 + length + choice.tokens.offset + 4)).toBeLessThan(0)
  })

  it('is refused where it has no place for what is asked', async () => {
    service = await startFake()
    for (const [param, body] of [
      ['stream', { token_ids: [5], sampling_params: {}, stream: true }],
      ['sampling_params.logprobs', { token_ids: [5], sampling_params: { logprobs: 2 } }],
    ] as const) {
      const response = await ask(body)
      expect(response.status).toBe(400)
      expect((await json(response)).error.param).toBe(param)
    }
  })

  it('is within 1.05 of the raw size of a long sequence', async () => {
    service = await startFake(
      { routedLayout: routedLayout({ experts: 64, layers: 40, topK: 8 }), maxModelLen: 40_000 },
      { returnsRoutedExperts: true },
    )
    const token_ids = Array.from({ length: 30_000 }, () => 1)
    const bytes = Buffer.from(await (await ask({ token_ids, sampling_params: { max_tokens: 8 } })).arrayBuffer())
    expect(bytes.byteLength / (30_007 * 320)).toBeLessThan(1.05)
  })
})

describe('choices', () => {
  it('of one request have seeds that follow each other', async () => {
    service = await startFake()
    const { choices, usage } = await json(service.post(generate, { token_ids: [1, 2], sampling_params: { n: 3, max_tokens: 4, seed: 40 } }))
    for (const [index, choice] of choices.entries())
      expect(choice.token_ids).toEqual([2, 3, 4, 5].map((place) => fakeToken(40n + BigInt(index), place, 128)))
    expect(usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 12, total_tokens: 14 })
  })

  it('of a stream come interleaved and add up to the same', async () => {
    service = await startFake()
    const body = {
      token_ids: [1, 2],
      sampling_params: { n: 3, max_tokens: 50, seed: 40, logprobs: 3 },
      stream_options: { include_usage: true },
    }
    const plain = await json(service.post(generate, body))
    const text = await (await service.post(generate, { ...body, stream: true })).text()
    const chunks = text.split('\n\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))
    for (const [index, theirs] of plain.choices.entries()) {
      const own = chunks.flatMap(({ choices }) => choices).filter((choice) => choice.index === index)
      expect(own.flatMap(({ token_ids }) => token_ids)).toEqual(theirs.token_ids)
      expect(own.flatMap(({ logprobs }) => logprobs.content)).toEqual(theirs.logprobs.content)
      expect(own.at(-1)).toMatchObject({ finish_reason: 'length', weight_versions: theirs.weight_versions })
    }
    expect(chunks.at(-1).usage).toMatchObject({ completion_tokens: 150 })
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  it('stop at a stop token, which stays and is named', async () => {
    service = await startFake()
    const stop = fakeToken(3n, 4, 128)
    const { choices } = await json(
      service.post(generate, { token_ids: [1], sampling_params: { seed: 3, stop_token_ids: [stop], max_tokens: 50 } }),
    )
    expect(choices[0]).toMatchObject({ finish_reason: 'stop', stop_reason: stop })
    expect(choices[0].token_ids.at(-1)).toBe(stop)
  })

  it('have the most likely tokens behind the sampled one, each once and in number as asked', async () => {
    service = await startFake()
    const { choices, prompt_logprobs } = await json(
      service.post(generate, { token_ids: [1, 2, 3], sampling_params: { logprobs: 3, prompt_logprobs: 2, max_tokens: 5 } }),
    )
    for (const { token_id, top_logprobs } of choices[0].logprobs.content) {
      expect(top_logprobs).toHaveLength(3)
      expect(top_logprobs[0].token_id).toBe(token_id)
      expect(new Set(top_logprobs.map((one: { token_id: number }) => one.token_id)).size).toBe(3)
    }
    expect(prompt_logprobs).toHaveLength(3)
    expect(prompt_logprobs[0]).toBeNull()
    expect(Object.keys(prompt_logprobs[1])).toContain('2')
    expect([2, 3]).toContain(Object.keys(prompt_logprobs[1]).length)
  })

  it('differ between requests without a seed, and come again after a start', async () => {
    const tokens = async () => {
      service = await startFake()
      const ask = async () =>
        (await json(service?.post(generate, { token_ids: [1], sampling_params: { max_tokens: 8 } }) as Promise<Response>)).choices[0]
          .token_ids
      const two = [await ask(), await ask()]
      await service.close()
      return two
    }
    const first = await tokens()
    expect(first[0]).not.toEqual(first[1])
    expect(await tokens()).toEqual(first)
    service = undefined
  })
})

it('spans of versions cover every token once', () => {
  expect(versionSpans([3, 3, 4, 4, 4, 3])).toEqual([
    { version: '3', start: 0, end: 2 },
    { version: '4', start: 2, end: 5 },
    { version: '3', start: 5, end: 6 },
  ])
  expect(versionSpans([])).toEqual([])
})

it('names the prompt when asked, in a stream with the first chunk', async () => {
  service = await startFake()
  const body = { token_ids: [1, 2], sampling_params: { max_tokens: 3 }, return_token_ids: true }
  expect((await json(service.post(generate, body))).prompt_token_ids).toEqual([1, 2])
  const text = await (await service.post(generate, { ...body, stream: true })).text()
  expect(text.split('\n\n').filter((line) => line.includes('prompt_token_ids'))).toHaveLength(1)
})

it('takes an id from the header before that of the body, and refuses another rank or model', async () => {
  service = await startFake()
  const ask = (headers: Record<string, string>, more = {}) =>
    service?.post(
      generate,
      { token_ids: [1], sampling_params: { max_tokens: 1 }, request_id: 'body', ...more },
      {
        headers: { 'content-type': 'application/json', ...headers },
      },
    ) as Promise<Response>
  expect((await json(ask({ 'x-request-id': 'header' }))).request_id).toBe('generate-tokens-header')
  expect((await json(ask({}))).request_id).toBe('generate-tokens-body')
  expect((await ask({ 'x-data-parallel-rank': '0' })).status).toBe(200)
  const refused = await ask({ 'x-data-parallel-rank': '1' })
  expect([refused.status, (await json(refused)).error.param]).toEqual([400, 'X-data-parallel-rank'])
  expect((await ask({ 'x-min-weight-version': '0' })).status).toBe(200)
  // A later answer may be another one, so that is no refusal for good.
  const older = await ask({ 'x-min-weight-version': '1' })
  expect([older.status, (await json(older)).error]).toMatchObject([
    503,
    { message: expect.stringContaining('version 0 of the weights serves') },
  ])
  expect((await ask({ 'x-min-weight-version': 'x' })).status).toBe(400)
  const other = await ask({}, { model: 'zzz' })
  expect([other.status, (await json(other)).error]).toMatchObject([404, { type: 'NotFoundError', param: 'model', code: 404 }])
})
