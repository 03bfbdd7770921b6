import { stickyRouter } from '@trilithon/builtin'
import type { Router } from '@trilithon/core'
import type { EpisodeRequest } from '@trilithon/environments'
import { recordingLogger } from '@trilithon/testing'
import { describe, expect, it } from 'vitest'
import { createWorld, groupOf, numberOf, stepEvents, type WorldOptions } from '../fakes/create-world.ts'
import { fraction } from '../source/random.ts'
import { VersionHolds } from '../updates/version-holds.ts'

const world = (options: Omit<WorldOptions, 'router'> = {}) =>
  createWorld({ router: stickyRouter.create({ config: {} } as never) as Router, ...options })

describe('a run', () => {
  it('ships its batches in order, of the size asked for, and saves beside each how to go on', async () => {
    const made = world()
    await made.run()
    const { trainer, records } = made
    expect(trainer.batches.map(({ step, samples }) => [step, samples.length])).toEqual([
      [0, 8],
      [1, 8],
      [2, 8],
    ])
    const ids = trainer.batches.flatMap(({ samples }) => samples.map(({ id }) => id))
    expect(new Set(ids).size).toBe(ids.length)
    expect([...records.keys()]).toEqual([0, 1, 2].map((step) => `step_${step}/train_rollouts.jsonl`))
    expect(trainer.batches.map(({ progress }) => [progress.step, progress.total_samples, progress.total_problems])).toEqual([
      [1, 8, 2],
      [2, 16, 4],
      [3, 24, 6],
    ])
    expect(stepEvents(made).map(({ step }) => step)).toEqual([0, 1, 2])
  })

  it('has every group under the salt of the version that it began under', async () => {
    // Room for one and a half groups: versions change while groups have episodes that were not started.
    const { run, pool, trainer } = world({
      settings: { maxSteps: 6, maxInflight: 6 },
      pool: { episode: (request) => ({ ms: 30 + 90 * fraction(6, numberOf(request)) }) },
    })
    await run()
    const salts = new Map<string, Set<string>>()
    for (const { groupId, salt } of pool.requests) salts.set(groupId, (salts.get(groupId) ?? new Set()).add(salt))
    expect([...salts.values()].every((own) => own.size === 1)).toBe(true)
    for (const { samples } of trainer.batches)
      for (const { id, versions } of samples) expect(versions[0]).toBeGreaterThanOrEqual(Number([...(salts.get(groupOf(id)) ?? [])][0]))
    expect(new Set(pool.requests.map(({ salt }) => salt)).size).toBeGreaterThan(3)
  })

  it('never has more episodes in flight than allowed', async () => {
    const { run, pool } = world({
      settings: { maxSteps: 5, maxInflight: 5 },
      pool: { episode: (request) => ({ ms: 20 + 90 * fraction(3, numberOf(request)) }) },
    })
    await run()
    expect(pool.mostInFlight).toBe(5)
  })

  it('starts no more episodes a minute than allowed', async () => {
    const { run, pool, clock } = world({ settings: { maxSteps: 6, tasksPerMinute: 8 } })
    await run()
    // Eight fit the first minute at once; forty more take five minutes.
    expect(pool.requests.length).toBeGreaterThanOrEqual(48)
    expect(clock.nowMs()).toBeGreaterThan(4.9 * 60_000)
    expect(clock.nowMs()).toBeLessThan(5.5 * 60_000)
  })

  it('counts a batch by tokens where asked to', async () => {
    const { run, trainer } = world({
      settings: { batchSize: null, tokenBatchSize: 30, maxInflight: 8 },
      pool: { episode: (request) => ({ ms: 50, turns: [1 + (numberOf(request) % 5)] }) },
    })
    await run()
    for (const { samples } of trainer.batches) {
      const lengths = samples.map(({ promptIds, completionIds }) => promptIds.length + completionIds.length)
      const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
      expect(sum(lengths)).toBeGreaterThanOrEqual(30)
      expect(sum(lengths.slice(0, -1))).toBeLessThan(30)
    }
  })

  it('waits for engines that are not ready', async () => {
    const made = world()
    made.parts.fleet.change('http://engine.test', { state: 'starting' })
    void made.clock.sleep(5000).then(() => made.parts.fleet.change('http://engine.test', { state: 'ready' }))
    await made.run()
    expect(made.trainer.batches).toHaveLength(3)
    expect(made.trainer.batches[0]?.atMs).toBeGreaterThanOrEqual(5000)
    expect(made.events).toContainEqual(expect.objectContaining({ kind: 'status', state: 'waiting for an engine' }))
  })

  it('leaves no lease and no session behind', async () => {
    const made = world({
      pool: { episode: (request) => ({ ms: 10 + 500 * fraction(5, numberOf(request)) ** 4 }) },
      settings: { maxSteps: 8, maxOffPolicySteps: 1 },
    })
    await made.run()
    expect(made.parts.router.stats(made.parts.fleet)).toEqual({ leases: 0, sessions: 0, leasesByWorker: {} })
    expect(made.pool.inFlight).toBe(0)
  })
})

describe('going on', () => {
  it('continues ids, tasks and counters behind the last batch, and trains each task once', async () => {
    const pool = { tasks: 40, episode: (request: EpisodeRequest) => ({ ms: 20 + 200 * fraction(7, numberOf(request)) }) }
    const first = world({ settings: { maxSteps: 3 }, pool })
    await first.run()
    const progress = first.trainer.batches[1]?.progress
    if (progress === undefined) throw new Error('no second batch')
    // Killed behind batch 1; the trainer had trained one batch.
    const second = world({ settings: { maxSteps: 6 }, pool, version: 1, change: () => ({ progress, isResume: true }) })
    // The trainer still has batch 1.
    await second.trainer.sender.send(1, [], {})
    second.trainer.batches.length = 0
    await second.run()
    expect(second.trainer.batches.map(({ step }) => step)).toEqual([2, 3, 4, 5])
    const samples = [...first.trainer.batches.slice(0, 2), ...second.trainer.batches].flatMap((batch) => batch.samples)
    expect(new Set(samples.map(({ id }) => id)).size).toBe(samples.length)
    expect(second.trainer.batches.at(-1)?.progress.total_samples).toBe(48)
    // What had been drawn when batch 1 was shipped, and was in no batch, is drawn again.
    const shipped = new Set(first.trainer.batches.slice(0, 2).flatMap((batch) => batch.samples.map(({ id }) => groupOf(id))))
    const open = progress.source.returned.map(({ index }) => index)
    expect(open).toHaveLength((progress.source.environments.fake?.position ?? 0) - shipped.size)
    expect(open.length).toBeGreaterThan(0)
    expect(second.pool.requests.map(({ taskIndex }) => taskIndex)).toEqual(expect.arrayContaining(open))
    // Each task of the epoch in one group only.
    const tasks = new Map([...first.pool.requests, ...second.pool.requests].map(({ groupId, taskIndex }) => [groupId, taskIndex]))
    const trained = [...new Set(samples.map(({ id }) => groupOf(id)))].map((group) => tasks.get(group))
    expect(new Set(trained).size).toBe(trained.length)
  })

  it('writes checkpoints where they are due, and at the end', async () => {
    const steps: number[] = []
    const made = world({
      settings: { maxSteps: 5, checkpointInterval: 2 },
      change: (parts) => ({ files: { ...parts.files, saveCheckpoint: ({ step }) => steps.push(step) } }),
    })
    await made.run()
    expect(steps).toEqual([2, 4, 5])
  })
})

describe('evaluations', () => {
  const evaluated = (options: Omit<WorldOptions, 'router'> & { readonly interval?: number; readonly groupSize?: number }) =>
    world({
      ...options,
      change: (parts) => ({
        evals: parts.train.map(({ environment }) => ({
          environment: { ...environment, name: 'test', split: 'eval' as const },
          ...{ groupSize: options.groupSize ?? 2, examples: 3, interval: options.interval ?? 2 },
        })),
        ...options.change?.(parts),
      }),
    })
  const evalSteps = (made: ReturnType<typeof world>) =>
    stepEvents(made).flatMap(({ step, values }) => ('eval/test/avg@2' in values ? [[step, values['eval/test/policy_version']]] : []))

  it('run at the start and every interval, of the weights of that step, beside training', async () => {
    const made = evaluated({ settings: { maxSteps: 4 }, stepMs: 50 })
    await made.run()
    expect(evalSteps(made)).toEqual([
      [0, 0],
      [2, 2],
      [4, 4],
    ])
    expect(made.trainer.batches).toHaveLength(4)
    expect(made.records.get('step_2/eval_rollouts_test.jsonl')).toHaveLength(6)
    expect(made.pool.requests.filter(({ split }) => split === 'eval').map(({ salt }) => salt)).toEqual([...'000000222222444444'])
  })

  it('draw each answer by a seed of its own, the same at every step; training draws by none', async () => {
    const made = evaluated({ settings: { maxSteps: 4 } })
    await made.run()
    const seeds = (step: number) =>
      made.pool.requests
        .filter(({ groupId }) => groupId.startsWith(`eval-test-${step}-`))
        .map(({ taskIndex, rolloutId, samplingSeed }) => [taskIndex, rolloutId.split('.').at(-1), samplingSeed])
    expect(seeds(0)).toHaveLength(6)
    expect(new Set(seeds(0).map(([, , seed]) => seed)).size).toBe(6)
    expect(seeds(2)).toEqual(seeds(0))
    expect(seeds(4)).toEqual(seeds(0))
    for (const [, , seed] of seeds(0)) expect(Number.isInteger(seed) && Number(seed) >= 0 && Number(seed) < 2 ** 31).toBe(true)
    const training = made.pool.requests.filter(({ split }) => split === 'train')
    expect(training.every(({ samplingSeed }) => samplingSeed === null)).toBe(true)
  })

  it('are summed in the order of their tasks, whatever came first', async () => {
    const reward = (request: EpisodeRequest) => 0.1 * (1 + (numberOf(request) % 7))
    const values = async (seed: number) => {
      const made = evaluated({
        settings: { maxSteps: 1 },
        pool: { episode: (request) => ({ ms: 10 + 90 * fraction(seed, numberOf(request)), reward: reward(request) }) },
      })
      await made.run()
      const lines = made.records.get('step_0/eval_rollouts_test.jsonl') as readonly { rollout_id: string }[]
      return [stepEvents(made)[0]?.values['eval/test/avg@2'], ...lines.map(({ rollout_id: id }) => id)]
    }
    const first = await values(1)
    for (const seed of [2, 3, 4]) expect(await values(seed)).toEqual(first)
  })

  it('are skipped at the start when asked', async () => {
    const made = evaluated({ settings: { maxSteps: 2, skipsFirstEval: true } })
    await made.run()
    expect(evalSteps(made)).toEqual([[2, 2]])
  })

  it('are made again where a run goes on at their step', async () => {
    const progress = {
      format: 1,
      step: 2,
      total_tokens: 0,
      total_samples: 0,
      total_problems: 0,
      next_group: 9,
      source: { draws: 9, environments: {}, returned: [] },
    } as const
    const made = evaluated({
      settings: { maxSteps: 3 },
      version: 2,
      change: () => ({ progress: { ...progress, source: { ...progress.source, returned: [] } }, isResume: true }),
    })
    await made.run()
    expect(evalSteps(made)).toEqual([[2, 2]])
  })

  it('are never cancelled for their age', async () => {
    const made = evaluated({
      settings: { maxSteps: 6, maxOffPolicySteps: 1, maxInflight: 16 },
      interval: 100,
      pool: { episode: ({ split }) => ({ ms: split === 'eval' ? 900 : 50 }) },
    })
    await made.run()
    expect(evalSteps(made)).toHaveLength(1)
    expect(made.pool.cancelled.filter((id) => id.startsWith('eval'))).toEqual([])
  })
})

describe('several engines', () => {
  const engineUrls = ['http://a.test', 'http://b.test']

  it('share the episodes', async () => {
    const made = world({ engineUrls })
    await made.run()
    const counts = engineUrls.map((url) => made.pool.requests.filter(({ baseUrl }) => baseUrl === url).length)
    expect(Math.abs((counts[0] ?? 0) - (counts[1] ?? 0))).toBeLessThanOrEqual(2)
    expect(made.engines.events.filter((event) => event === 'pause')).toHaveLength(
      made.engines.events.filter((event) => event === 'resume').length,
    )
  })

  it('go on without one that failed, which keeps its pause; its episodes run elsewhere', async () => {
    const log = recordingLogger()
    const { lines } = log
    const made = world({ engineUrls, log, settings: { maxSteps: 6 } })
    made.engines.fails = (engine, call) => (engine === 'http://b.test' && call === 'flip 1' ? new Error('flip is broken') : undefined)
    await made.run()
    expect(made.trainer.batches).toHaveLength(6)
    expect(made.parts.fleet.stateOf('http://b.test')).toBe('failed')
    expect(lines).toContainEqual(expect.objectContaining({ message: 'an engine failed and is not used' }))
    const late = made.pool.requests.filter(({ salt }) => Number(salt) >= 1)
    expect(late.every(({ baseUrl }) => baseUrl === 'http://a.test')).toBe(true)
  })

  it('may differ in how they change weights: what changes by itself is not paused', async () => {
    const made = world({ engineUrls, settings: { maxSteps: 6 } })
    const calls: string[] = []
    made.engines.betweenSteps = (engine) => engine === 'http://a.test'
    made.engines.fails = (engine, call) => {
      calls.push(`${engine.slice(7, 8)} ${call}`)
      return undefined
    }
    await made.run()
    expect(made.trainer.batches).toHaveLength(6)
    const first = calls.slice(0, calls.indexOf('b finish 1') + 1)
    expect(first).toEqual(['a prepare 1', 'b prepare 1', 'a exchange 1', 'b pause', 'b flip 1', 'b resume', 'a finish 1', 'b finish 1'])
  })

  it.each(['a', 'b'])('go on when %s fails and the other changes weights in another way', async (broken) => {
    const made = world({ engineUrls, settings: { maxSteps: 6 } })
    made.engines.betweenSteps = (engine) => engine === 'http://a.test'
    made.engines.fails = (engine, call) =>
      engine === `http://${broken}.test` && /^(exchange|flip) 1$/.test(call) ? new Error('broken') : undefined
    await made.run()
    expect(made.trainer.batches).toHaveLength(6)
    const states = engineUrls.map((url) => made.parts.fleet.stateOf(url))
    expect(states).toEqual(broken === 'a' ? ['failed', 'ready'] : ['ready', 'failed'])
  })

  it.each(['prepare 1', 'pause', 'flip 1', 'resume', 'finish 1', 'exchange 1'])(
    'end the run with their own text when none is left: %s',
    async (broken) => {
      const made = world({ engineUrls })
      made.engines.betweenSteps = () => broken === 'exchange 1'
      made.engines.fails = (engine, call) => (call === broken ? new Error(`${engine} says no`) : undefined)
      await expect(made.run()).rejects.toMatchObject({
        code: 'ENGINE_FAILED',
        message: expect.stringMatching(/a\.test says no.*b\.test says no/),
      })
    },
  )
})

it('leaves out a version that was tidied away before it could be held, and keeps the one that serves', async () => {
  const held: number[] = []
  const made = world({
    settings: { maxSteps: 8 },
    change: () => ({
      holds: new VersionHolds((version) => {
        if (version === 3) return null
        held.push(version)
        return { release: () => held.splice(held.indexOf(version), 1) }
      }),
    }),
  })
  await made.run()
  const prepared = made.engines.events.filter((event) => event.startsWith('prepare'))
  expect(prepared).not.toContain('prepare 3')
  expect(prepared.length).toBeGreaterThan(3)
  expect(held).toEqual([made.engines.served])
})

it('tells with every batch how updates went, also how long engines were paused', async () => {
  const made = world({ settings: { maxSteps: 6 } })
  made.engines.callMs = 20
  await made.run()
  const last = stepEvents(made).at(-1)?.values
  // Pause, flip and resume, 20 ms each.
  expect(last?.['watcher/pause_seconds']).toBeCloseTo(0.06, 6)
  expect(last?.['watcher/hold_seconds']).toBeCloseTo(0.06, 6)
  expect(last?.['watcher/update_count']).toBeGreaterThan(2)
  expect(last).toMatchObject({ 'watcher/policy_version': expect.any(Number), 'dispatcher/queued/eval': 0, 'dispatcher/mode': 0 })
  const status = made.events.findLast(({ kind }) => kind === 'status')
  expect(status).toMatchObject({ values: { 'event_loop_lag/max': expect.any(Number), 'event_loop_lag/p99': expect.any(Number) } })
})

it('takes the length of a pause from engines that change weights by themselves', async () => {
  const made = world({ settings: { maxSteps: 6 } })
  made.engines.betweenSteps = () => true
  made.engines.callMs = 20
  await made.run()
  const last = stepEvents(made).at(-1)?.values
  expect(last).toMatchObject({ 'watcher/pause_seconds': 0.001, 'watcher/engine_step_seconds': 0.02, 'watcher/hold_seconds': 0.02 })
  expect(made.engines.events).not.toContain('pause')
})
