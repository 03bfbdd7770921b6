import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { silentLogger, type Turn } from '@trilithon/core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Dealer } from 'zeromq'
import { type FakeEngine, startFakeEngine } from '../__fixtures__/fake-engine.ts'
import { createEnvironmentPool } from '../pool/create-environment-pool.ts'
import type { EnvironmentPool, EnvironmentPoolOptions, EpisodeRequest } from '../pool/environment-pool.ts'
import { unpack } from '../protocol/pack.ts'
import { type EnvironmentServer, type EnvironmentServerOptions, startEnvironmentServer } from './environment-server.ts'

const fixtures = fileURLToPath(new URL('../__fixtures__/', import.meta.url))
const workerEntry = { file: join(fixtures, 'worker-entry.mjs') }
const never = new AbortController().signal
const noLimits = { timeoutS: null, maxRetries: 3, maxTotalCompletionTokens: -1, stateColumns: [] }

let engine: FakeEngine
let server: EnvironmentServer
const opened: { dispose(): Promise<void> }[] = []
const start = (more: Partial<EnvironmentServerOptions> = {}) =>
  startEnvironmentServer({
    ...{
      id: './scripted-environment.mjs',
      args: { tasks: ['echo', 'hang', 'throw', 'die'] },
      workers: 1,
      workerEntry,
      workingDirectory: fixtures,
    },
    ...{ address: 'tcp://127.0.0.1:0', limits: noLimits, log: silentLogger, ...more },
  })
beforeAll(async () => {
  engine = await startFakeEngine()
  server = await start({ limits: { ...noLimits, timeoutS: 60, maxRetries: 1, stateColumns: ['kept'] } })
})
afterAll(async () => {
  await server.dispose()
  await engine.close()
})
beforeEach(() => {
  engine.requests.length = 0
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.dispose()))
})

async function connect(address: string, more: Partial<EnvironmentPoolOptions> = {}): Promise<EnvironmentPool> {
  const pool = await createEnvironmentPool({
    ...{
      id: 'served',
      workers: 0,
      workerEntry,
      address,
      renderer: { config: null, tokenizer: 'letters', model: 'm' },
      log: silentLogger,
      ...more,
    },
  })
  opened.push(pool)
  return pool
}
const episode = (taskIndex: number): EpisodeRequest => ({
  ...{ rolloutId: `r${taskIndex}`, groupId: 'g', taskIndex, split: 'train' as const, seed: 0, baseUrl: engine.url, headers: {}, salt: '4' },
  ...{ session: 's', lease: { id: 'l', deadlineMs: null }, model: 'm', sampling: { temperature: 1 }, maxSeqLen: 64, apiKeyVar: null },
  wantsRoutedExperts: false,
})

describe('an environment server', () => {
  it('runs episodes of a pool elsewhere, which needs no workers and no name of the environment', async () => {
    const pool = await connect(server.address)
    expect([pool.name, pool.tasks, pool.evalTasks, pool.scoring]).toEqual(['served', null, 8, 'rollout'])
    const seen: Turn[] = []
    const result = await pool.run(episode(0), { signal: never, onTurn: (turn) => seen.push(turn) })
    expect(result).toMatchObject({ reward: 0.5, state: { kept: { deep: [0] } } })
    expect(result.turns).toEqual(seen)
    expect(String.fromCharCode(...(seen[0]?.promptIds ?? []))).toBe('t0=')
    expect(await pool.run(episode(2), { signal: never })).toMatchObject({ reward: null, error: { type: 'RangeError' } })
    expect(server.stats).toMatchObject({ inFlight: 0, finished: 2 })
  })

  it('keeps to its own deadline, whatever it is asked for', async () => {
    const strict = await start({ limits: { ...noLimits, timeoutS: 1 } })
    opened.push(strict)
    const pool = await connect(strict.address, { timeoutS: 600 })
    // Else the test itself times out.
    expect(await pool.run(episode(1), { signal: never })).toMatchObject({ reward: null, error: { type: 'DeadlineExceeded' } })
  })

  it('tries as often as it says itself, whatever it is asked for', async () => {
    const pool = await connect(server.address, { maxRetries: 9 })
    expect(await pool.run(episode(3), { signal: never })).toMatchObject({ reward: null, error: { type: 'WorkerDied' } })
    expect(engine.requests).toHaveLength(2)
  })

  it('hears that an episode is cancelled', async () => {
    const pool = await connect(server.address)
    engine.troubles.push('hang')
    const aborted = engine.aborted()
    const controller = new AbortController()
    const waiting = pool.run(episode(0), { signal: controller.signal })
    await expect.poll(() => engine.requests.length).toBe(1)
    controller.abort()
    expect(await waiting).toMatchObject({ error: { type: 'Cancelled' } })
    await expect.poll(() => engine.aborted()).toBe(aborted + 1)
    engine.troubles.push('hang')
    const left = pool.run(episode(0), { signal: never })
    await expect.poll(() => engine.requests.length).toBe(2)
    await pool.dispose()
    expect(await left).toMatchObject({ error: { type: 'Cancelled' } })
    await expect.poll(() => engine.aborted()).toBe(aborted + 2)
  })

  it('speaks the frames of the protocol: ping, refusal, request ids of any text', async () => {
    const dealer = new Dealer({ linger: 0 })
    dealer.connect(server.address)
    await dealer.send(['0123456789abcdef0123456789abcdef', 'ping'])
    const [id, pong] = await dealer.receive()
    expect(id?.toString()).toBe('0123456789abcdef0123456789abcdef')
    expect(unpack(pong ?? Buffer.of())).toMatchObject({ success: true, error: null })
    await dealer.send(['x', 'no msgpack'])
    expect(unpack((await dealer.receive())[1] ?? Buffer.of())).toMatchObject({ success: false, error: { type: 'REQUEST_INVALID' } })
    await dealer.send(['unknown', ''])
    await dealer.send(['y', 'ping'])
    expect(String((await dealer.receive())[0])).toBe('y')
    dealer.close()
  })

  it('that is started anew gets its episodes again, and each is answered once', async () => {
    const first = await start()
    const pool = await connect(first.address)
    engine.troubles.push('hang')
    const turns: Turn[] = []
    const waiting = pool.run(episode(0), { signal: never, onTurn: (turn) => turns.push(turn) })
    await expect.poll(() => engine.requests.length).toBe(1)
    // Probes have told the pool whom it talks to.
    await new Promise((resolve) => setTimeout(resolve, 1200))
    await first.dispose()
    opened.push(await start({ address: first.address }))
    expect(await waiting).toMatchObject({ reward: 0.5 })
    expect(turns).toHaveLength(1)
    expect(pool.stats).toMatchObject({ finished: 1, rerun: 1 })
  })

  it('that is not there is told of', async () => {
    await expect(connect('tcp://127.0.0.1:1', { startTimeoutS: 0.3 })).rejects.toMatchObject({
      code: 'TASK_FAILED',
      path: 'env.address',
      message: expect.stringMatching(/tcp:\/\/127.0.0.1:1 after 0.3 s/),
    })
  })

  it('says where it cannot listen', async () => {
    await expect(start({ address: server.address })).rejects.toMatchObject({ code: 'PORT_IN_USE', path: 'env.address' })
    await expect(start({ address: 'somewhere' })).rejects.toMatchObject({ code: 'CONFIG_VALUE_INVALID', path: 'env.address' })
  })
})
