import { connect, type Socket } from 'node:net'
import { routedLayout } from '@trilithon/core'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { type FakeService, startFake } from '../__fixtures__/start-fake.ts'

let service: FakeService
afterEach(() => service.close())

const generate = '/inference/v1/generate'
const until = async (condition: () => boolean, ms = 5000) => {
  const end = performance.now() + ms
  while (!condition()) {
    if (performance.now() > end) throw new Error('it did not happen')
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
const portOf = (url: string) => Number(new URL(url).port)
const open = () => {
  const socket = connect(portOf(service.url), '127.0.0.1')
  socket.on('error', () => undefined)
  return socket
}
const requestText = (body: string, path = generate, more = '') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const isHealthy = async () => {
  expect((await service.get('/health')).status).toBe(200)
  const response = await service.post(generate, { token_ids: [1, 2], sampling_params: { max_tokens: 3 } })
  expect(((await response.json()) as { usage: object }).usage).toMatchObject({ completion_tokens: 3 })
}
/** Everything that a socket gets until it is closed. */
const received = (socket: Socket, ms = 1500) =>
  new Promise<string>((resolve) => {
    let text = ''
    socket.on('data', (data) => {
      text += data
    })
    socket.on('close', () => resolve(text))
    setTimeout(() => resolve(text), ms)
  })

describe('a client that goes away', () => {
  it.each([true, false])('ends its request in the engine (stream %s)', async (stream) => {
    service = await startFake({ stepMs: 1 })
    const controller = new AbortController()
    const body = { token_ids: [1], sampling_params: { max_tokens: 1500, n: 2 }, stream }
    const asked = service.post(generate, body, { signal: controller.signal, headers: { 'content-type': 'application/json' } })
    asked.catch(() => undefined)
    await until(() => service.engine.stats().generatedTokens > 4)
    controller.abort()
    await until(() => service.engine.open === 0)
    expect(service.engine.stats().finished).toMatchObject({ abort: 2, length: 0 })
    await until(() => service.server.active.size === 0)
  })

  it('in the middle of its request leaves nothing', async () => {
    service = await startFake()
    for (const cut of [5, 60, 120, 200]) {
      const socket = open()
      socket.write(requestText(JSON.stringify({ token_ids: Array.from({ length: 100 }, () => 1), sampling_params: {} })).slice(0, cut))
      await new Promise((resolve) => setTimeout(resolve, 5))
      socket.destroy()
    }
    await isHealthy()
    expect(service.engine.open).toBe(0)
  })

  it('at any moment, a hundred times, frees everything', { timeout: 15_000 }, async () => {
    service = await startFake({ stepMs: 1 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 12 }), stream: fc.boolean() }), { minLength: 20, maxLength: 20 }),
        async (clients) => {
          await Promise.all(
            clients.map(async ({ afterMs, stream }) => {
              const socket = open()
              socket.write(requestText(JSON.stringify({ token_ids: [1], sampling_params: { max_tokens: 1000 }, stream })))
              await new Promise((resolve) => setTimeout(resolve, afterMs))
              socket.destroy()
            }),
          )
          await until(() => service.engine.open === 0 && service.server.active.size === 0)
        },
      ),
      { numRuns: 5 },
    )
    await isHealthy()
  })
})

describe('a slow reader', () => {
  it('holds up nobody, is not buffered without bound, and gets all of it when it reads', async () => {
    service = await startFake({ maxModelLen: 40_000 })
    const tokens = 30_000
    const socket = open()
    socket.pause()
    const body = { token_ids: [1], sampling_params: { max_tokens: tokens, logprobs: 5, seed: 1 }, stream: true, request_id: 'slow' }
    socket.write(requestText(JSON.stringify(body), generate, 'Connection: close\r\n'))
    await until(() => service.engine.stats().generatedTokens > 100)
    const started = performance.now()
    await isHealthy()
    expect(performance.now() - started).toBeLessThan(1000)
    await until(() => service.engine.open === 0, 15_000)
    // The engine has gone on to the end; the request's place is free.
    expect(service.engine.stats().finished.length).toBeGreaterThanOrEqual(1)
    await until(() => service.server.active.size === 0)
    let text = ''
    const all = new Promise<void>((resolve) => socket.on('close', () => resolve()))
    socket.on('data', (data) => {
      text += data
    })
    socket.resume()
    await all
    const chunks = text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))
    const ids = chunks.flatMap(({ choices }) => choices).flatMap(({ token_ids }) => token_ids)
    expect(ids).toHaveLength(tokens)
    // What was missed came in fewer, larger chunks than there are tokens.
    expect(chunks.length).toBeLessThan(tokens)
    expect(text).toContain('data: [DONE]')
  }, 30_000)
})

it('serves 256 streams at once, none of which waits for another', { timeout: 20_000 }, async () => {
  service = await startFake({ stepMs: 1 })
  const answers = await Promise.all(
    Array.from({ length: 256 }, async (_, index) => {
      const body = { token_ids: [index % 128], sampling_params: { max_tokens: 20, seed: index }, stream: true }
      return (await service.post(generate, body)).text()
    }),
  )
  for (const text of answers) {
    const chunks = text.split('\n\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))
    expect(chunks.flatMap(({ choices }) => choices).flatMap(({ token_ids }) => token_ids)).toHaveLength(20)
  }
  expect(service.engine.stats().finished).toMatchObject({ length: 256 })
  expect(service.server.active.size).toBe(0)
})

it('loses none of 64 streams in the middle of which the weights change', { timeout: 20_000 }, async () => {
  service = await startFake({ stepMs: 1 })
  const streams = Array.from({ length: 64 }, async (_, index) => {
    const body = { token_ids: [index], sampling_params: { max_tokens: 120, seed: index }, stream: true }
    return (await service.post(generate, body)).text()
  })
  for (const version of [1, 2, 3]) {
    await until(() => service.engine.stats().generatedTokens > 64 * 20 * version)
    const path = service.version(version)
    expect((await service.post('/start_weight_update', { version, path })).status).toBe(200)
    await service.post('/pause?mode=keep')
    expect((await service.post('/update_weights', { update_info: { version } })).status).toBe(200)
    await service.post('/resume')
    await service.post('/finish_weight_update', { weight_version: String(version) })
  }
  for (const text of await Promise.all(streams)) {
    const chunks = text.split('\n\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))
    expect(chunks.flatMap(({ choices }) => choices).flatMap(({ token_ids }) => token_ids)).toHaveLength(120)
    const [last] = chunks.at(-1).choices
    expect(last.finish_reason).toBe('length')
    expect(last.weight_versions.map(({ version }: { version: string }) => version)).toEqual(['0', '1', '2', '3'])
    expect(last.context_versions.at(-1)).toEqual({ version: '2', start: expect.any(Number), end: 120 })
  }
})

describe('whatever comes over a socket', () => {
  it('is answered or refused, and leaves the server healthy', { timeout: 30_000 }, async () => {
    service = await startFake()
    const json = JSON.stringify({ token_ids: [1, 2, 3], sampling_params: { max_tokens: 2 } })
    const whole = requestText(json)
    const pieces = fc.oneof(
      fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
      fc.integer({ min: 0, max: whole.length }).map((end) => Buffer.from(whole.slice(0, end))),
      fc.constant(Buffer.from(whole)),
      fc.jsonValue().map((value) => Buffer.from(requestText(JSON.stringify(value)))),
      fc.string().map((text) => Buffer.from(requestText(text))),
      fc
        .constantFrom('/pause', '/update_weights', '/tokenize', '/abort_requests', '/weight_checker')
        .map((path) => Buffer.from(requestText('{"a":', path))),
      fc
        .constantFrom('GET', 'PUT', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE', 'PATCH')
        .map((method) => Buffer.from(`${method} ${generate} HTTP/1.1\r\nHost: x\r\n\r\n`)),
      fc
        .constantFrom(
          'Transfer-Encoding: chunked',
          'Content-Length: -1',
          'Content-Length: 99999999999',
          'Expect: 100-continue',
          'Upgrade: h2c',
        )
        .map((header) => Buffer.from(`POST ${generate} HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\nzz\r\n`)),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(pieces, { minLength: 1, maxLength: 6 }), async (sent) => {
        const socket = open()
        const answer = received(socket, 30)
        for (const piece of sent) socket.write(piece)
        await answer
        socket.destroy()
        expect((await service.get('/health')).status).toBe(200)
      }),
      { numRuns: 80 },
    )
    await until(() => service.engine.open === 0)
    await isHealthy()
  })

  it('is answered in order when requests are sent ahead', async () => {
    service = await startFake()
    const socket = open()
    const answer = received(socket)
    const ask = (max_tokens: number, more = '') =>
      requestText(JSON.stringify({ token_ids: [1], sampling_params: { max_tokens } }), generate, more)
    socket.write(ask(30) + ask(1) + ask(7, 'Connection: close\r\n'))
    const lengths = [...(await answer).matchAll(/"completion_tokens":(\d+)/g)].map(([, count]) => Number(count))
    expect(lengths).toEqual([30, 1, 7])
  })

  it('is not read when it is too large, and headers that are too long are refused', async () => {
    service = await startFake()
    const large = await service.post(generate, { token_ids: [1], sampling_params: {}, padding: 'x'.repeat(400_000) })
    expect([large.status, ((await large.json()) as { error: object }).error]).toMatchObject([
      413,
      { type: 'RequestTooLargeError', code: 413 },
    ])
    const socket = open()
    socket.write(`GET /health HTTP/1.1\r\nHost: x\r\nX-Long: ${'y'.repeat(40_000)}\r\n\r\n`)
    expect(await received(socket)).toMatch(/^HTTP\/1\.1 431/)
    await isHealthy()
  })

  it('may be JSON as deep as it likes, or a poisoned prototype, or no JSON', async () => {
    service = await startFake()
    const raw = (body: string) => service.post(generate, undefined, { body, headers: { 'content-type': 'application/json' } })
    for (const body of [
      '['.repeat(100_000),
      `{"token_ids":[1],"sampling_params":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`,
      `{"token_ids":${'['.repeat(50_000)}${']'.repeat(50_000)},"sampling_params":{}}`,
      '{"token_ids":[1],"sampling_params":{},"__proto__":{"a":1}}',
      '{"token_ids":[1e999],"sampling_params":{}}',
      '',
      'null',
      '3',
    ]) {
      const response = await raw(body)
      expect([body.slice(0, 20), response.status]).toEqual([body.slice(0, 20), 400])
      expect(Object.keys(((await response.json()) as { error: object }).error)).toEqual(['message', 'type', 'param', 'code'])
    }
    const text = await service.post(generate, undefined, { body: 'a=b', headers: { 'content-type': 'text/plain' } })
    expect(text.status).toBe(415)
    await isHealthy()
  })
})

describe('the end', () => {
  it('of the server answers what runs with what there is, within a second, and takes nothing new', async () => {
    service = await startFake({ stepMs: 5 })
    const plain = service.post(generate, { token_ids: [1], sampling_params: { max_tokens: 2000 } })
    const streamed = service
      .post(generate, { token_ids: [1], sampling_params: { max_tokens: 2000 }, stream: true })
      .then((response) => response.text())
    const idle = open()
    await until(() => service.engine.stats().generatedTokens > 4)
    const started = performance.now()
    const closed = service.server.close({ drainMs: 100 })
    const json = (await (await plain).json()) as { choices: { finish_reason: string; token_ids: number[] }[] }
    expect(json.choices[0]).toMatchObject({ finish_reason: 'abort' })
    expect(json.choices[0]?.token_ids.length).toBeGreaterThan(1)
    expect(await streamed).toMatch(/"finish_reason":"abort".*\[DONE\]\n\n$/s)
    await closed
    expect(performance.now() - started).toBeLessThan(900)
    idle.destroy()
    await expect(service.get('/health')).rejects.toThrow()
  })

  it('of the server waits for large answers that are on their way, and for nobody who does not read', async () => {
    service = await startFake(
      { routedLayout: routedLayout({ experts: 64, layers: 40, topK: 8 }), maxModelLen: 40_000 },
      { returnsRoutedExperts: true },
    )
    const body = { token_ids: Array.from({ length: 5000 }, () => 1), sampling_params: { max_tokens: 1 } }
    const deaf = open()
    deaf.pause()
    deaf.write(requestText(JSON.stringify(body)))
    const answer = service.post(generate, body)
    await until(() => (service.engine.stats().finished.length ?? 0) >= 2)
    const started = performance.now()
    const closed = service.server.close({ drainMs: 0 })
    const json = (await (await answer).json()) as { choices: { routed_experts: string }[] }
    expect(json.choices[0]?.routed_experts.length).toBeGreaterThan(2_000_000)
    await closed
    expect(performance.now() - started).toBeLessThan(1000)
    deaf.destroy()
  })

  it('of the engine is told to every request, to health and to liveness', async () => {
    service = await startFake({ stepMs: 5 })
    const plain = service.post(generate, { token_ids: [1], sampling_params: { max_tokens: 2000 } })
    const streamed = service
      .post(generate, { token_ids: [1], sampling_params: { max_tokens: 2000 }, stream: true })
      .then((response) => response.text())
    await until(() => service.engine.stats().generatedTokens > 4)
    service.engine.die(new Error('out of memory'))
    const answer = await plain
    expect([answer.status, await answer.text()]).toEqual([500, expect.stringContaining('out of memory')])
    expect(await streamed).toMatch(/"error":.*out of memory.*\[DONE\]/s)
    expect((await service.get('/health')).status).toBe(503)
    expect((await service.get('/liveness')).status).toBe(503)
    const late = await service.post(generate, { token_ids: [1], sampling_params: {} })
    expect(late.status).toBe(503)
  })
})
