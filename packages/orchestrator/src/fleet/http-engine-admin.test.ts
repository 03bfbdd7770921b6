import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { silentLogger } from '@trilithon/core'
import { recordingLogger } from '@trilithon/testing'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../run/clock.ts'
import { VersionHolds } from '../updates/version-holds.ts'
import { WeightUpdater } from '../updates/weight-updater.ts'
import { adminTimeouts, createHttpEngineAdmin } from './http-engine-admin.ts'
import { LiveFleet } from './live-fleet.ts'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

type Answer = (
  call: { readonly method: string; readonly url: string; readonly body: unknown; readonly headers: IncomingMessage['headers'] },
  answer: ServerResponse,
) => void

/** An engine that says what the test wants. */
async function engine(answer: Answer): Promise<{ readonly url: string; readonly calls: string[] }> {
  const calls: string[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    try {
      for await (const piece of request) text += piece
    } catch {
      // Whoever asked has given it up.
      return
    }
    calls.push(`${request.method} ${request.url}${text === '' ? '' : ` ${text}`}`)
    answer({ method: request.method ?? '', url: request.url ?? '', body: text, headers: request.headers }, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls }
}

function admin(timeouts = {}) {
  const made = createHttpEngineAdmin({
    headers: { authorization: 'Bearer key' },
    timeouts: { pauseMs: 150, prepareMs: 150, readMs: 150, backOffMs: 5, ...timeouts },
  })
  closers.push(() => void made.dispose())
  return made
}
const ok: Answer = (_, answer) => answer.end('{"status":"ok"}')

describe('the administration of an engine', () => {
  it('speaks the routes of the server, with the key', async () => {
    const keys: unknown[] = []
    const { url, calls } = await engine(({ url: path, headers }, answer) => {
      keys.push(headers.authorization)
      if (path === '/v1/models') return answer.end('{"data":[{"id":"m"}]}')
      if (path === '/weight_info') return answer.end('{"weight_version":"7"}')
      if (path === '/metrics')
        return answer.end(
          '# HELP x\nvllm:num_requests_running{engine="0"} 3\nvllm:num_requests_waiting{engine="0"} 2.0\nvllm:kv_cache_usage_perc{engine="0"} 0.25\n' +
            'vllm:prefix_cache_queries_total{engine="0"} 40\nvllm:prefix_cache_hits_total{engine="0"} 30\nvllm:generation_tokens_total{engine="0"} 1.5e+3\nvllm:num_preemptions_total{engine="0"} 6\n',
        )
      answer.end('{"status":"ok"}')
    })
    const one = admin()
    expect(await one.isHealthy(url)).toBe(true)
    expect(await one.models(url)).toEqual(['m'])
    expect(await one.version(url)).toBe(7)
    expect(await one.load(url)).toEqual({
      ...{ running: 3, waiting: 2, kvUsage: 0.25 },
      ...{ prefixQueries: 40, prefixHits: 30, generatedTokens: 1500, preemptions: 6 },
    })
    expect(await one.prepare(url, 8, '/b/step_8')).toEqual({ betweenSteps: false })
    await one.pause(url)
    await one.flip(url, 8)
    await one.resume(url)
    await one.finish(url, 8)
    expect(calls.slice(4)).toEqual([
      'POST /start_weight_update {"version":8,"path":"/b/step_8"}',
      'POST /pause?mode=keep',
      'POST /update_weights {"update_info":{"version":8}}',
      'POST /resume',
      'POST /finish_weight_update {"weight_version":"8"}',
    ])
    expect(new Set(keys)).toEqual(new Set(['Bearer key']))
  })

  it('leaves the pause to an engine that offers it', async () => {
    const { url, calls } = await engine(({ url: path }, answer) =>
      answer.end(
        path === '/update_weights' ? '{"status":"ok","paused_seconds":0.25,"step_seconds":0.5}' : '{"status":"ok","between_steps":true}',
      ),
    )
    const one = admin()
    expect(await one.prepare(url, 8, '/b/step_8')).toEqual({ betweenSteps: true })
    expect(await one.exchange(url, 8)).toEqual({ pausedSeconds: 0.25, stepSeconds: 0.5 })
    expect(calls.at(-1)).toBe('POST /update_weights {"update_info":{"version":8,"between_steps":true}}')
  })

  it.each(['', 'null', '{}'])('takes an answer of %j for one of an engine that does not', async (text) => {
    const { url } = await engine((_, answer) => answer.end(text))
    expect(await admin().prepare(url, 8, '/b/step_8')).toEqual({ betweenSteps: false })
  })

  it.each([
    ['an answer of 500', (answer: ServerResponse) => answer.writeHead(500).end('busy')],
    ['no answer', () => undefined],
    ['a broken connection', (answer: ServerResponse) => answer.destroy()],
  ])('tries again after %s', async (_, fail) => {
    let count = 0
    const { url } = await engine((call, answer) => (++count < 3 ? fail(answer) : ok(call, answer)))
    await admin({ pauseMs: 500 }).pause(url)
    expect(count).toBe(3)
  })

  it('gives up after a bounded number of times, with the text of the engine', async () => {
    const { url, calls } = await engine((_, answer) => answer.writeHead(500).end('{"error":{"message":"the disk is gone","code":500}}'))
    await expect(admin().prepare(url, 1, '/x')).rejects.toMatchObject({
      code: 'ENGINE_FAILED',
      message: expect.stringMatching(/start_weight_update failed \(5 times\): 500 the disk is gone$/),
    })
    expect(calls).toHaveLength(5)
  })

  it('waits less than five seconds in all between its tries', () => {
    const { backOffMs, attempts } = adminTimeouts
    expect(backOffMs * (2 ** (attempts - 1) - 1)).toBeLessThan(5000)
  })

  it('takes a refusal for an answer', async () => {
    const { url, calls } = await engine((_, answer) => answer.writeHead(400).end('{"error":{"message":"WEIGHTS_INVALID: w is damaged"}}'))
    await expect(admin().prepare(url, 1, '/x')).rejects.toMatchObject({
      code: 'ENGINE_FAILED',
      message: expect.stringContaining('400 WEIGHTS_INVALID: w is damaged'),
    })
    expect(calls).toHaveLength(1)
  })

  it.each([
    ['is silent', () => undefined],
    ['fails', (answer: ServerResponse) => void answer.writeHead(500).end('busy')],
  ])('ends with the run at once where the engine %s, with its reason', async (_, fail) => {
    const { url, calls } = await engine((__, answer) => fail(answer))
    const one = admin({ pauseMs: 5000, prepareMs: 5000, readMs: 5000, backOffMs: 5000 })
    const controller = new AbortController()
    const reason = new Error('the run ends')
    setTimeout(() => controller.abort(reason), 60)
    const begin = performance.now()
    const { signal } = controller
    const made = [
      ...[one.prepare(url, 1, '/x', signal), one.pause(url, signal), one.flip(url, 1, signal), one.exchange(url, 1, signal)],
      ...[one.finish(url, 1, signal), one.version(url, signal), one.models(url, signal)],
    ]
    for (const outcome of await Promise.allSettled(made)) expect(outcome).toEqual({ status: 'rejected', reason })
    expect(performance.now() - begin).toBeLessThan(2000)
    const before = calls.length
    await expect(one.pause(url, signal)).rejects.toBe(reason)
    expect(calls).toHaveLength(before)
  })

  it('resumes an engine once also behind the end of the run', async () => {
    let isBroken = false
    const { url, calls } = await engine((_, answer) => (isBroken ? answer.writeHead(500).end('busy') : answer.end('{}')))
    const one = admin({ backOffMs: 5000 })
    const signal = AbortSignal.abort(new Error('the run ends'))
    await one.resume(url, signal)
    isBroken = true
    await expect(one.resume(url, signal)).rejects.toThrow('the run ends')
    expect(calls).toHaveLength(2)
  })

  it('is not healthy where nobody answers', async () => {
    expect(await admin().isHealthy('http://127.0.0.1:9')).toBe(false)
  })

  it('tells of an answer that it cannot read', async () => {
    const { url } = await engine((_, answer) => answer.end('<html>'))
    await expect(admin().models(url)).rejects.toMatchObject({ code: 'ENGINE_FAILED', message: expect.stringContaining('<html>') })
  })
})

describe('an update over a network that loses answers', () => {
  it('converges: one of three answers is lost, and both engines serve the version and run', async () => {
    const states = [0, 1].map(() => ({ served: 0, prepared: -1, isPaused: false }))
    const engines = await Promise.all(
      states.map((state, index) => {
        let count = index
        return engine(({ url, body }, answer) => {
          // What was asked is done; then the answer is lost.
          const version = Number(/"?version"?:"?(\d+)/.exec(String(body))?.[1])
          if (url.startsWith('/start')) state.prepared = version
          if (url.startsWith('/pause')) state.isPaused = true
          if (url.startsWith('/update')) {
            const isAlone = String(body).includes('between_steps')
            if (version !== state.served && (version !== state.prepared || !(state.isPaused || isAlone)))
              return answer.writeHead(409).end('no')
            state.served = version
          }
          if (url.startsWith('/resume')) state.isPaused = false
          // Every third answer: by a broken connection, or by silence.
          if (++count % 3 === 0) return count % 6 === 0 ? undefined : answer.destroy()
          // The second one changes weights between its steps.
          return answer.end(index === 0 ? '{}' : '{"between_steps":true,"paused_seconds":0,"step_seconds":0}')
        })
      }),
    )
    const fleet = new LiveFleet(
      engines.map(({ url }) => ({ url, adminUrl: url, ranks: 1 })),
      systemClock,
    )
    const served: number[] = []
    const nothing = () => undefined
    const updater = new WeightUpdater({
      ...{
        // An answer that a busy machine brings late is one more that is lost; how often a call is repeated at most is another test's.
        admin: admin({ pauseMs: 250, prepareMs: 250, attempts: 30 }),
        fleet,
        clock: systemClock,
        log: silentLogger,
        folderOf: (version) => `/b/step_${version}`,
        holds: new VersionHolds(() => ({ release: nothing })),
      },
      ...{
        onPending: async () => undefined,
        onPause: nothing,
        onServed: (version) => served.push(version),
        onEnd: nothing,
        onEngineFailed: nothing,
      },
    })
    for (const version of [1, 2, 3]) await updater.apply(version)
    expect(served).toEqual([1, 2, 3])
    expect(states).toEqual([0, 1].map(() => ({ served: 3, prepared: 3, isPaused: false })))
    expect([...fleet.workers()].map(({ state, policyVersion }) => [state, policyVersion])).toEqual([
      ['ready', 3],
      ['ready', 3],
    ])
    expect(updater.times.pause).toBeGreaterThan(0)
    expect(updater.times.update).toBeGreaterThanOrEqual(updater.times.pause)
  })

  it('is given up with the run, resumes what it paused, and calls no engine failed', async () => {
    const paths: string[] = []
    const controller = new AbortController()
    const { url } = await engine(({ url: path }, answer) => {
      paths.push(path)
      if (!path.startsWith('/update')) return answer.end('{}')
      controller.abort(new Error('the run ends'))
    })
    const fleet = new LiveFleet([{ url, adminUrl: url, ranks: 1 }], systemClock)
    const log = recordingLogger()
    const updater = new WeightUpdater({
      ...{ admin: admin({ pauseMs: 20_000 }), fleet, clock: systemClock, log, folderOf: () => '/b' },
      holds: new VersionHolds(() => ({ release: () => undefined })),
      ...{ onPending: async () => undefined, onPause: () => undefined, onServed: () => undefined },
      onEnd: () => paths.push('end'),
      onEngineFailed: () => expect.unreachable(),
    })
    const begin = performance.now()
    await expect(updater.apply(1, controller.signal)).rejects.toThrow('the run ends')
    expect(performance.now() - begin).toBeLessThan(2000)
    expect(paths).toEqual(['/start_weight_update', '/pause?mode=keep', '/update_weights', '/resume', 'end'])
    expect(fleet.stateOf(url)).toBe('ready')
    expect(log.lines).toEqual([])
  })
})
