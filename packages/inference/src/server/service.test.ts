import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { TrilithonError } from '@trilithon/core'
import { createCharTokenizer, createTemplateRenderer, loadTokenizer } from '@trilithon/renderers'
import { afterEach, describe, expect, it } from 'vitest'
import { type FakeService, startFake } from '../__fixtures__/start-fake.ts'
import { isLoopback, resolveApiKey } from './authorise.ts'
import { createSeeds } from './seeds.ts'

let service: FakeService | undefined
afterEach(async () => {
  await service?.close()
  service = undefined
})
const generate = '/inference/v1/generate'

describe('a key', () => {
  it('is needed on every route but health, and compared as a whole', async () => {
    service = await startFake({}, { apiKey: 'secret-key' })
    expect((await service.get('/health')).status).toBe(200)
    for (const [method, path] of [
      ['GET', '/v1/models'],
      ['GET', '/metrics'],
      ['GET', '/nowhere'],
      ['GET', '/health/x'],
      ['POST', generate],
      ['POST', '/pause?mode=abort'],
      ['POST', '/update_weights'],
    ] as const) {
      for (const authorization of [undefined, 'secret-key', 'Bearer', 'Bearer secret', 'Bearer secret-key2', 'Basic secret-key']) {
        const response = await fetch(`${service.url}${path}`, {
          method,
          ...(authorization === undefined ? {} : { headers: { authorization } }),
        })
        expect([path, authorization, response.status]).toEqual([path, authorization, 401])
        expect(await response.json()).toEqual({ error: 'Unauthorized' })
      }
    }
    expect(service.engine.calls).toEqual([])
    expect((await service.get('/v1/models', { headers: { authorization: 'Bearer secret-key' } })).status).toBe(200)
  })

  it('is asked for wherever others reach the server', () => {
    expect(['127.0.0.1', '127.9.9.9', '::1', 'localhost'].every(isLoopback)).toBe(true)
    expect(['0.0.0.0', '::', '10.0.0.1', 'myhost', '127.0.0.1.example.com', '128.0.0.1'].some(isLoopback)).toBe(false)
    expect(resolveApiKey('127.0.0.1', 'KEY', {})).toBeNull()
    expect(resolveApiKey('127.0.0.1', 'KEY', { KEY: 'k' })).toBe('k')
    expect(resolveApiKey('0.0.0.0', 'KEY', { KEY: 'k' })).toBe('k')
    for (const environment of [{}, { KEY: '' }, { OTHER: 'k' }]) {
      expect(() => resolveApiKey('0.0.0.0', 'KEY', environment)).toThrow(
        expect.objectContaining({ code: 'CONFIG_VALUE_INVALID', path: 'server.host' }),
      )
    }
  })
})

describe('a port', () => {
  it('that is in use is one clear error', async () => {
    service = await startFake()
    const port = Number(new URL(service.url).port)
    const error = await startFake({}, { port }).catch((reason: unknown) => reason)
    expect(TrilithonError.is(error, 'PORT_IN_USE') && [error.path, error.message]).toEqual([
      'server.port',
      `port ${port} of 127.0.0.1 is in use`,
    ])
  })

  it('of an address that is not ours is another', async () => {
    const error = await startFake({}, { host: '192.0.2.1' }).catch((reason: unknown) => reason)
    expect(TrilithonError.is(error, 'CONFIG_VALUE_INVALID')).toBe(true)
  })
})

describe('metrics', () => {
  it("have vLLM's names and types, and count what happened", async () => {
    service = await startFake()
    const token_ids = Array.from({ length: 40 }, () => 1)
    for (let time = 0; time < 2; time++)
      await (await service.post(generate, { token_ids, sampling_params: { max_tokens: 5, n: 2 } })).text()
    const text = await (await service.get('/metrics')).text()
    const theirs = JSON.parse(readFileSync(join(import.meta.dirname, '..', '__fixtures__', 'wire', 'metric_types.json'), 'utf8'))
    const types = [...text.matchAll(/^# TYPE (vllm:\w+) (\w+)/gm)].map(([, name, type]) => [name, type] as const)
    expect(types.length).toBeGreaterThan(15)
    for (const [name, type] of types) expect([name, type]).toEqual([name, theirs[name as string]])
    const value = (name: string, more = '') => Number(new RegExp(`^${name}\\{[^}]*${more}[^}]*\\} (.+)$`, 'm').exec(text)?.[1])
    expect(value('vllm:prompt_tokens_total')).toBe(160)
    expect(value('vllm:generation_tokens_total')).toBe(20)
    expect(value('vllm:prefix_cache_queries_total')).toBe(160)
    expect(value('vllm:prefix_cache_hits_total')).toBe(96)
    expect(value('vllm:request_success_total', 'finished_reason="length"')).toBe(4)
    expect(value('vllm:request_success_total', 'finished_reason="abort"')).toBe(0)
    expect(value('vllm:time_to_first_token_seconds_count')).toBe(4)
    expect(value('vllm:inter_token_latency_seconds_count')).toBe(16)
    expect(value('vllm:e2e_request_latency_seconds_count')).toBe(4)
    expect(value('vllm:request_prompt_tokens_sum')).toBe(160)
    const times = ['queue', 'prefill'].map((name) => value(`vllm:request_${name}_time_seconds_sum`))
    expect([...times, value('vllm:request_queue_time_seconds_count')]).toEqual([0.5, 1, 2])
    // The fake has 0 steps of at most 1 token, 1 of at most 8, 2 of at most 16, …, and 13 of more than 16,384.
    const steps = (bound: string) => value('vllm:iteration_tokens_total_bucket', `le="${bound}"`)
    expect(['1', '8', '16', '32', '16384'].map(steps)).toEqual([0, 1, 3, 6, 78])
    expect([steps('\\+Inf'), value('vllm:iteration_tokens_total_count'), value('vllm:iteration_tokens_total_sum')]).toEqual([91, 91, 777])
    expect(value('vllm:kv_cache_usage_perc')).toBe(0)
    expect(text).toMatch(/vllm:cache_config_info\{.*block_size="16",num_gpu_blocks="1024"/)
    expect(text).toContain('model_name="m"')
    // Counted by the engine: a second look counts nothing twice.
    const again = await (await service.get('/metrics')).text()
    expect(/^vllm:generation_tokens_total\S* (\d+)/m.exec(again)?.[1]).toBe('20')
  })

  it('know liveness by the time since the last step', async () => {
    service = await startFake({}, { livenessTimeoutMs: 1000 })
    expect([(await service.get('/liveness')).status, await (await service.get('/liveness')).json()]).toEqual([200, { status: 'ok' }])
    const { engine } = service
    const stats = engine.stats.bind(engine)
    engine.stats = () => ({ ...stats(), idleMs: 2000 })
    const dead = await service.get('/liveness')
    expect([dead.status, await dead.json()]).toEqual([503, { status: 'engine_unresponsive' }])
  })
})

describe('text', () => {
  const post = async (path: string, body: object) => {
    const response = await (service as FakeService).post(path, body)
    return [response.status, await response.json()] as const
  }

  it('is served with the tokeniser of the model folder', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trilithon-text-'))
    const { files } = createCharTokenizer('abcHelo')
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
    const tokenizer = loadTokenizer(folder)
    service = await startFake({}, { text: { tokenizer, renderer: createTemplateRenderer(tokenizer) } })
    const [status, answer] = await post('/tokenize', { model: 'm', prompt: 'Hello', return_token_strs: true })
    expect([status, answer]).toEqual([
      200,
      { count: 5, max_model_len: 2048, tokens: tokenizer.encode('Hello'), token_strs: ['H', 'e', 'l', 'l', 'o'] },
    ])
    expect(await post('/detokenize', { tokens: tokenizer.encode('Hello') })).toEqual([200, { prompt: 'Hello' }])
    const [chatStatus, chat] = (await post('/tokenize', { messages: [{ role: 'user', content: 'abc' }] })) as [number, { tokens: number[] }]
    expect(chatStatus).toBe(200)
    expect(tokenizer.decode(chat.tokens)).toContain('abc')
    expect((await post('/tokenize', { prompt: 'zzz' }))[0]).toBe(400)
    expect((await post('/tokenize', { messages: [{ role: 'nobody' }] }))[0]).toBe(400)
    expect((await post('/detokenize', { tokens: [1_000_000] }))[0]).toBe(400)
    expect((await post('/tokenize', { model: 'other', prompt: 'a' }))[0]).toBe(404)
    expect((await post('/tokenize', { prompt: 'a', other: 1 }))[0]).toBe(400)
    const [, generated] = (await post(generate, { token_ids: [0, 1, 2], sampling_params: { prompt_logprobs: 0, max_tokens: 1 } })) as [
      number,
      { prompt_logprobs: Record<string, { decoded_token: string }>[] },
    ]
    expect(generated.prompt_logprobs[1]?.['1']?.decoded_token).toBe(tokenizer.decode([1]))
    rmSync(folder, { recursive: true })
  })

  it('is refused where there is no tokeniser, and ids are served all the same', async () => {
    service = await startFake()
    for (const [path, body] of [
      ['/tokenize', { prompt: 'a' }],
      ['/detokenize', { tokens: [1] }],
    ] as const)
      expect(await post(path, body)).toMatchObject([400, { error: { message: expect.stringContaining('tokenizer.json') } }])
    expect((await post(generate, { token_ids: [1], sampling_params: { max_tokens: 1 } }))[0]).toBe(200)
  })
})

it('methods that a route has not are 405, and say which it has', async () => {
  service = await startFake()
  const response = await service.get(generate)
  expect([response.status, response.headers.get('allow'), await response.json()]).toEqual([405, 'POST', { detail: 'Method Not Allowed' }])
})

it('seeds of a server never come twice, and two engines have others', () => {
  const first = createSeeds(0, 0)
  const second = createSeeds(0, 1)
  const seeds = Array.from({ length: 10_000 }, () => [first(), second()]).flat()
  expect(new Set(seeds).size).toBe(20_000)
})

it('memory stays where it is over thousands of requests', { timeout: 60_000 }, async () => {
  service = await startFake()
  const { url } = service
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const ask = async (count: number) => {
    for (let done = 0; done < count; done += 50)
      await Promise.all(
        Array.from({ length: 50 }, async () => {
          const body = JSON.stringify({ token_ids: [1, 2, 3], sampling_params: { max_tokens: 2 } })
          await (await fetch(`${url}${generate}`, { method: 'POST', body, headers: { 'content-type': 'application/json' } })).arrayBuffer()
        }),
      )
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = await ask(1000)
  const after = await ask(1000)
  // What one request leaves behind would be kilobytes.
  expect((after - before) / 1000).toBeLessThan(900)
})
