import { fork } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { silentLogger, type Turn } from '@trilithon/core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FakeEngine, startFakeEngine } from '../__fixtures__/fake-engine.ts'
import { createEnvironmentPool } from './create-environment-pool.ts'
import type { EnvironmentPool, EnvironmentPoolOptions, EpisodeRequest, WorkerDeath } from './environment-pool.ts'

const fixtures = fileURLToPath(new URL('../__fixtures__/', import.meta.url))
const never = new AbortController().signal

let engine: FakeEngine
let folder = ''
const pools: EnvironmentPool[] = []
beforeAll(async () => {
  engine = await startFakeEngine()
  folder = mkdtempSync(join(tmpdir(), 'trilithon-pool-'))
  // Sockets of these pools alone are in there.
  process.env.TMPDIR = folder
})
afterAll(async () => {
  delete process.env.TMPDIR
  await engine.close()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  engine.options = {}
  engine.outage = null
  engine.requests.length = 0
  engine.troubles.length = 0
})
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.dispose()))
})

function optionsOf(more: Partial<EnvironmentPoolOptions> = {}): EnvironmentPoolOptions {
  return {
    id: './scripted-environment.mjs',
    workers: 1,
    workerEntry: { file: join(fixtures, 'worker-entry.mjs') },
    workingDirectory: fixtures,
    renderer: { config: null, tokenizer: 'letters', model: 'm' },
    maxRetries: 0,
    log: silentLogger,
    ...more,
  }
}

async function open(more: Partial<EnvironmentPoolOptions> = {}): Promise<EnvironmentPool> {
  const pool = await createEnvironmentPool(optionsOf(more))
  pools.push(pool)
  return pool
}

const tasks = (...kinds: string[]) => ({ args: { tasks: kinds } })
const episode = (taskIndex = 0, more: Partial<EpisodeRequest> = {}): EpisodeRequest => ({
  rolloutId: `r${taskIndex}`,
  groupId: 'g',
  taskIndex,
  split: 'train',
  seed: 0,
  baseUrl: engine.url,
  headers: { 'x-extra': 'yes' },
  salt: '4',
  session: `s${taskIndex}`,
  lease: { id: 'l', deadlineMs: 20_000 },
  model: 'm',
  sampling: { temperature: 0.5 },
  maxSeqLen: 64,
  apiKeyVar: null,
  wantsRoutedExperts: false,
  ...more,
})
const run = (pool: EnvironmentPool, index = 0, more: Partial<EpisodeRequest> = {}) => pool.run(episode(index, more), { signal: never })
const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('a pool', () => {
  const kinds = ['echo', 'throw', 'nan', 'text', 'throw-score', 'bad-metric', 'stray', 'twice', 'hang']
  const of = (kind: string) => kinds.indexOf(kind)
  let pool: EnvironmentPool
  beforeAll(async () => {
    pool = await createEnvironmentPool(optionsOf({ ...tasks(...kinds), workers: 2, stateColumns: ['kept', 'pid'] }))
  })
  afterAll(() => pool.dispose())

  it('runs an episode in another process and streams its turns', async () => {
    engine.options = { experts: { layers: 2, topK: 2 } }
    expect([pool.name, pool.tasks, pool.evalTasks, pool.scoring]).toEqual(['scripted-environment', null, 8, 'rollout'])
    const seen: Turn[] = []
    const result = await pool.run(episode(of('twice'), { wantsRoutedExperts: true, samplingSeed: 11 }), {
      signal: never,
      onTurn: (turn) => seen.push(turn),
    })
    expect(result).toMatchObject({
      reward: 0.5,
      metrics: { answers: 2 },
      stopCondition: 'completed',
      taskId: 'train/7',
      state: { kept: { deep: [7] } },
    })
    expect(result.error).toBeUndefined()
    expect(result.state.pid).not.toBe(process.pid)
    expect(result.turns).toEqual(seen)
    expect(result.turns.map(({ promptIds }) => String.fromCharCode(...promptIds))).toEqual(['t7=', 't7=de\u0002t7='])
    const [turn] = result.turns
    expect(turn).toMatchObject({ temperature: 0.5, finishReason: 'stop', routedExperts: { shape: [5, 2, 2], dtype: 'uint8' } })
    expect([...(turn?.versions ?? [])]).toEqual([3, 4, 3])
    expect(engine.requests[0]?.headers).toMatchObject({ 'x-session-id': 's7', 'x-extra': 'yes' })
    expect(engine.requests[0]?.body).toMatchObject({ cache_salt: '4', sampling_params: { routed_experts_prompt_start: 0, seed: 11 } })
    expect(pool.stats).toMatchObject({ workers: 2, inFlight: 0, finished: 1, workerDeaths: 0 })
  })

  it('spreads episodes over its workers, the least busy first', async () => {
    engine.options = { delayMs: 150 }
    const results = await Promise.all(Array.from({ length: 8 }, () => run(pool)))
    const counts = new Map<unknown, number>()
    for (const { state } of results) counts.set(state.pid, (counts.get(state.pid) ?? 0) + 1)
    expect([...counts.values()]).toEqual([4, 4])
  })

  it('cancels an episode: the engine hears of it, the worker goes on', async () => {
    engine.troubles.push('hang')
    const aborted = engine.aborted()
    const controller = new AbortController()
    const waiting = pool.run(episode(), { signal: controller.signal })
    await expect.poll(() => engine.requests.length).toBe(1)
    controller.abort()
    await expect(waiting).resolves.toMatchObject({ reward: null, error: { type: 'Cancelled' } })
    await expect.poll(() => engine.aborted()).toBe(aborted + 1)
    expect(await run(pool)).toMatchObject({ reward: 0.5 })
    expect(await pool.run(episode(), { signal: AbortSignal.abort() })).toMatchObject({ error: { type: 'Cancelled' } })
  })

  it('keeps errors of environments in their results', async () => {
    const types = {
      throw: 'RangeError',
      nan: 'RewardInvalid',
      text: 'RewardInvalid',
      'throw-score': 'TypeError',
      'bad-metric': 'RewardInvalid',
    }
    for (const [kind, type] of Object.entries(types)) expect(await run(pool, of(kind))).toMatchObject({ reward: null, error: { type } })
    expect(await run(pool, of('stray'))).toMatchObject({ reward: 0.5 })
  })

  it('waits for an engine that is away, and without one has no rewards', async () => {
    engine.outage = 503
    const lease = { id: 'l', deadlineMs: 1000 }
    const results = await Promise.all([0, 1, 2, 3].map(() => run(pool, 0, { lease })))
    expect(results.map(({ reward, error }) => [reward, error?.type])).toEqual(Array(4).fill([null, 'EngineUnavailable']))
    const waiting = run(pool)
    await new Promise((resolve) => setTimeout(resolve, 200))
    engine.outage = null
    expect(await waiting).toMatchObject({ reward: 0.5 })
  })

  it('ends an episode when its lease does, and kills nobody for it', async () => {
    const result = await run(pool, of('hang'), { lease: { id: 'l', deadlineMs: 300 } })
    expect(result).toMatchObject({ reward: null, error: { type: 'DeadlineExceeded', message: expect.stringMatching('0.3 s') } })
    expect(pool.stats).toMatchObject({ workerDeaths: 0, inFlight: 0 })
  })
})

describe('a worker', () => {
  it('that a reward keeps busy is killed at the deadline, and an episode beside it runs again with all of its time and retries', async () => {
    const deaths: WorkerDeath[] = []
    const pool = await open({ ...tasks('busy-score', 'wait-first'), timeoutS: 1, onWorkerDeath: (death) => deaths.push(death) })
    const attempts: number[] = []
    const began = performance.now()
    const [busy, other] = await Promise.all([
      run(pool, 0),
      pool.run(episode(1), { signal: never, onTurn: (_, attempt) => attempts.push(attempt) }),
    ])
    expect(busy).toMatchObject({ reward: null, error: { type: 'DeadlineExceeded', message: expect.stringMatching(/without a pause/) } })
    expect(other).toMatchObject({ reward: 0.5 })
    // Both attempts may have sampled; of one alone there are turns.
    expect(other.turns).toHaveLength(1)
    expect(attempts.at(-1)).toBe(1)
    expect(performance.now() - began).toBeLessThan(4500)
    expect(deaths).toMatchObject([{ worker: 0, rolloutIds: ['r0', 'r1'], reason: expect.stringMatching(/without a pause/) }])
    expect(pool.stats).toMatchObject({ workerDeaths: 1, rerun: 1 })
  })

  it('that a busy loop holds disturbs no other one', async () => {
    const pool = await open({ ...tasks('busy'), workers: 2, timeoutS: 1 })
    const busy = run(pool)
    await new Promise((resolve) => setTimeout(resolve, 100))
    const times: number[] = []
    for (let index = 1; index < 6; index++) {
      const began = performance.now()
      expect(await run(pool, index, { lease: { id: 'l', deadlineMs: 20_000 } })).toMatchObject({ reward: 0.5 })
      times.push(performance.now() - began)
    }
    expect(Math.max(...times)).toBeLessThan(900)
    expect(await busy).toMatchObject({ error: { type: 'DeadlineExceeded' } })
  })

  it('that ends is noticed at once; what ran there runs again, and is an error when no retry is left', async () => {
    const deaths: WorkerDeath[] = []
    const onWorkerDeath = (death: WorkerDeath) => deaths.push(death)
    const pool = await open({ ...tasks('die', 'crash', 'slow'), maxRetries: 1, onWorkerDeath, logFolder: join(folder, 'dying') })
    const began = performance.now()
    expect(await run(pool)).toMatchObject({
      reward: null,
      error: { type: 'WorkerDied', message: expect.stringMatching(/killed by SIGKILL/) },
    })
    expect(performance.now() - began).toBeLessThan(5000)
    expect(deaths).toHaveLength(2)
    expect(deaths[0]).toMatchObject({ rolloutIds: ['r0'], reason: 'it was killed by SIGKILL' })
    expect(await run(pool, 1)).toMatchObject({ error: { type: 'WorkerDied', message: expect.stringMatching(/ended with status 1/) } })
    expect(readFileSync(join(folder, 'dying', 'env_worker_0.log'), 'utf8')).toMatch(/out of a timer/)
    const slow = run(pool, 2)
    await expect.poll(() => engine.requests.length).toBe(5)
    process.kill(await pidOf(pool), 'SIGKILL')
    expect(await slow).toMatchObject({ reward: 0.5 })
  })

  it('goes on where its log cannot be written', async () => {
    mkdirSync(join(folder, 'full'))
    symlinkSync('/dev/full', join(folder, 'full', 'env_worker_0.log'))
    const pool = await open({ ...tasks('throw'), logFolder: join(folder, 'full') })
    expect(await run(pool)).toMatchObject({ error: { type: 'RangeError' } })
    expect(await run(pool, 1)).toMatchObject({ reward: 0.5 })
    expect(pool.stats.workerDeaths).toBe(0)
  })

  it('that hangs without a deadline is noticed by its silence', async () => {
    const pool = await open({ ...tasks('busy'), unresponsiveS: 1 })
    const result = await run(pool, 0, { lease: { id: 'l', deadlineMs: null } })
    expect(result).toMatchObject({ error: { type: 'WorkerDied', message: expect.stringMatching(/did not answer for 1 s/) } })
  })

  it('ends with the pool, also where a busy loop holds it, and nothing is left', async () => {
    const pool = await open({ ...tasks('busy'), workers: 2, stateColumns: ['pid'] })
    const pids = await Promise.all([pidOf(pool), pidOf(pool)])
    const [busy, other] = [run(pool, 0, { lease: { id: 'l', deadlineMs: null } }), pool.run(episode(1), { signal: never })]
    await expect(other).resolves.toMatchObject({ reward: 0.5 })
    await pool.dispose()
    await expect(busy).resolves.toMatchObject({ error: { type: 'Cancelled' } })
    expect(pids.map(isAlive)).toEqual([false, false])
    expect(await run(pool)).toMatchObject({ error: { type: 'Cancelled' } })
    expect(socketFolders()).toEqual([])
    await pool.dispose()
  })

  it('ends with the process that started it, however that ended', async () => {
    const child = fork(join(fixtures, 'pool-owner.mjs'), [engine.url], { execArgv: [] })
    const pids = await new Promise<number[]>((resolve) => child.once('message', (message) => resolve(message as number[])))
    expect(pids.map(isAlive)).toEqual([true, true])
    child.kill('SIGKILL')
    await expect.poll(() => pids.map(isAlive), { timeout: 15_000 }).toEqual([false, false])
    expect(socketFolders()).toEqual([])
  })

  /** The first worker's: a worker names itself in the state of an episode. */
  async function pidOf(pool: EnvironmentPool): Promise<number> {
    const result = await pool.run(episode(99), { signal: never })
    return Number(result.state.pid ?? readFileSync(join(folder, 'dying', 'env_worker_0.log'), 'utf8').match(/.*"pid":(\d+)/s)?.[1])
  }
})

describe('a group', () => {
  it('runs in one worker and is scored as one', async () => {
    const pool = await open({ id: './group-environment.mjs', workers: 2 })
    expect(pool.scoring).toBe('group')
    const group = [0, 1, 2].map((member) => episode(5, { rolloutId: `r${member}`, session: `s${member}` }))
    const results = await pool.runGroup(group, { signal: never })
    expect(results.map(({ reward }) => reward)).toEqual([0, 1, 2])
    expect(new Set(results.map(({ metrics }) => metrics.pid)).size).toBe(1)
    expect(results.map(({ turns }) => turns.length)).toEqual([1, 1, 1])
    expect(engine.requests.map(({ headers }) => headers['x-session-id']).sort()).toEqual(['s0', 's1', 's2'])
    expect(await pool.runGroup([], { signal: never })).toEqual([])
  })
})

describe('an environment that cannot be loaded', () => {
  const write = (name: string, text: string) => {
    mkdirSync(join(folder, 'bad'), { recursive: true })
    writeFileSync(join(folder, 'bad', name), text)
    return join(folder, 'bad', name)
  }
  const sdk = "import { defineEnvironment } from '@trilithon/environments'\nimport { z } from 'zod'\n"
  const whole =
    'name: "x", args: z.strictObject({}), dataset: () => ({ size: { train: 1, eval: 1 }, task: () => ({}) }), episode: async () => 1, score: () => 1'

  it('is refused with its fault, and no process is left', async () => {
    await expect(createEnvironmentPool(optionsOf({ id: 'reverse-text', args: { min_length: 0 }, workers: 2 }))).rejects.toMatchObject({
      code: 'ENVIRONMENT_INVALID',
      path: 'env.id',
      message: expect.stringMatching(/args.min_length/),
      hint: 'Correct `args` of the environment.',
    })
    expect(socketFolders()).toEqual([])
  })

  it('and one outside of every installation may import this package and zod', async () => {
    const pool = await open({
      id: write('ok.mjs', `${sdk}export default defineEnvironment({ ${whole}, episode: ({ model }) => model.turn('a') })`),
    })
    expect(await run(pool)).toMatchObject({ reward: 1 })
    // Of one task there is no other.
    expect(await run(pool, 1)).toMatchObject({ error: { type: 'TaskInvalid' } })
  })

  it('and a worker that does not start in time is told of', async () => {
    const id = write('slow.mjs', 'await new Promise((resolve) => setTimeout(resolve, 60_000))')
    const starting = createEnvironmentPool(optionsOf({ id, startTimeoutS: 0.5, logFolder: join(folder, 'slow') }))
    await expect(starting).rejects.toMatchObject({
      code: 'TASK_FAILED',
      message: expect.stringMatching(/not ready after 0.5 s; see .*env_worker_0.log/),
    })
    expect(existsSync(join(folder, 'slow', 'env_worker_0.log'))).toBe(true)
  })
})

function socketFolders(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('trilithon-env-'))
}
