import { stickyRouter } from '@trilithon/builtin'
import { lagOf, type Router, type Sample } from '@trilithon/core'
import type { EpisodeRequest } from '@trilithon/environments'
import { recordingLogger } from '@trilithon/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  FakeEngines,
  type FakeEpisode,
  type FakePartsOptions,
  FakePool,
  type FakePoolOptions,
  FakeTrainer,
  fakeParts,
} from '../fakes/fake-world.ts'
import { VirtualClock } from '../fakes/virtual-clock.ts'
import { createFilters } from '../filters/rollout-filter.ts'
import { fraction } from '../source/random.ts'
import { Orchestrator } from './orchestrator.ts'
import type { OrchestratorParts } from './orchestrator-parts.ts'

type WorldOptions = Partial<Omit<FakePartsOptions, 'pools'>> & {
  readonly pool?: Partial<FakePoolOptions>
  readonly stepMs?: number
  readonly change?: (parts: OrchestratorParts) => Partial<OrchestratorParts>
  readonly version?: number
}

/** A number of an episode that its time may follow from. */
const numberOf = ({ taskIndex, rolloutId }: EpisodeRequest) => taskIndex * 16 + Number(rolloutId.split('.').at(-1))
const steady = (): FakeEpisode => ({ ms: 100 })

function world(options: WorldOptions = {}) {
  const clock = new VirtualClock()
  const engines = new FakeEngines(clock, options.version)
  const trainer = new FakeTrainer(clock, options.stepMs ?? 10, options.version)
  const pool = new FakePool({ clock, engines, episode: steady, ...options.pool })
  const made = fakeParts({
    clock,
    engines,
    trainer,
    pools: [pool],
    router: stickyRouter.create({ config: {} } as never) as Router,
    ...options,
  })
  const parts = { ...made, ...options.change?.(made) }
  const orchestrator = new Orchestrator(parts)
  const run = async () => {
    const controller = new AbortController()
    const training = trainer.run(controller.signal)
    await clock.run(orchestrator.run(controller.signal).finally(() => controller.abort()))
    await training
  }
  return { clock, engines, trainer, pool, parts, orchestrator, run, events: made.events, records: made.records }
}

const lag = (step: number, { versions, mask }: Sample) => lagOf(step, versions, mask)
const groupOf = (sampleId: string) => sampleId.split('.')[0] ?? ''
const stepEvents = ({ events }: ReturnType<typeof world>) => events.flatMap((event) => (event.kind === 'step' ? [event] : []))

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
    const { run, pool, trainer } = world({ settings: { maxSteps: 6 } })
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

describe('how far batches run ahead', () => {
  it.each([0, 1, 2])('level %i ships batch N only when version N - level serves', async (level) => {
    // The trainer is far slower than the episodes.
    const { run, trainer } = world({ settings: { maxSteps: 6, maxAsyncLevel: level }, stepMs: 1000 })
    await run()
    for (const { step, atMs } of trainer.batches) {
      // Version v is there when v steps of a second are over.
      expect(Math.floor(atMs / 1000)).toBeGreaterThanOrEqual(step - level)
    }
    // The trainer never waits once it has begun, but for level 0.
    const end = trainer.batches.at(-1)?.atMs ?? 0
    expect(end / 1000).toBeCloseTo(5 - level, level === 0 ? -1 : 0)
  })

  it('level 0 starts only what the batch needs, under the version that it trains', async () => {
    const { run, trainer, pool } = world({ settings: { maxSteps: 4, maxAsyncLevel: 0, maxInflight: 64 } })
    await run()
    expect(pool.requests).toHaveLength(4 * 8)
    for (const { step, samples } of trainer.batches) for (const { versions } of samples) expect([...versions]).toEqual([step, step])
  })

  it('level 0 tops up for episodes that failed, and lets nothing cross a version', async () => {
    const { run, trainer } = world({
      settings: { maxSteps: 5, maxAsyncLevel: 0, maxInflight: 64 },
      pool: {
        episode: (request) =>
          fraction(9, numberOf(request)) < 0.3
            ? { ms: 5, error: { type: 'X', message: 'x' } }
            : { ms: 60 * fraction(8, numberOf(request)) },
      },
    })
    await run()
    for (const { step, samples } of trainer.batches) {
      expect(samples).toHaveLength(8)
      for (const sample of samples) expect(lag(step, sample)).toBe(0)
    }
  })

  it('overlaps episodes with training at level 1, and not at level 0', async () => {
    const rate = async (maxAsyncLevel: number) => {
      const { run, clock } = world({ settings: { maxSteps: 20, maxAsyncLevel }, stepMs: 100 })
      await run()
      return clock.nowMs() / 20
    }
    expect(Math.abs((await rate(0)) - 200)).toBeLessThan(10)
    expect(Math.abs((await rate(1)) - 100)).toBeLessThan(10)
  })

  it('pays on a long tail', async () => {
    const longTail = (request: EpisodeRequest) => {
      const normal =
        Math.sqrt(-2 * Math.log(fraction(1, 2 * numberOf(request)) + 1e-12)) *
        Math.cos(2 * Math.PI * fraction(1, 2 * numberOf(request) + 1))
      return { ms: 1000 * Math.exp(0.98977 * normal) }
    }
    const minutes = async (maxAsyncLevel: number) => {
      const { run, clock } = world({
        settings: { maxSteps: 30, batchSize: 64, maxInflight: 64, maxAsyncLevel },
        stepMs: 200,
        pool: { episode: longTail },
      })
      await run()
      return clock.nowMs()
    }
    // Batches half as large as in tools/bench/async.mjs, where the factor is 8.
    expect((await minutes(0)) / (await minutes(1))).toBeGreaterThan(4)
  })
})

describe('staleness', () => {
  it('ships nothing that lags more than the bound, whatever the times', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          level: fc.nat(2),
          bound: fc.nat(3),
          seed: fc.nat(1000),
          tail: fc.integer({ min: 1, max: 6 }),
          stepMs: fc.constantFrom(1, 50, 400),
          inflight: fc.constantFrom(4, 8, 24),
        }),
        async ({ level, bound, seed, tail, stepMs, inflight }) => {
          const { run, trainer } = world({
            settings: { maxSteps: 8, maxAsyncLevel: level, maxOffPolicySteps: bound, maxInflight: inflight },
            stepMs,
            pool: { episode: (request) => ({ ms: 20 + 300 * fraction(seed, numberOf(request)) ** tail, turns: [2, 1] }) },
          })
          await run()
          expect(trainer.batches.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
          const lags = trainer.batches.flatMap(({ step, samples }) => samples.map((sample) => lag(step, sample)))
          expect(Math.max(...lags)).toBeLessThanOrEqual(level === 0 ? 0 : bound)
          const ids = trainer.batches.flatMap(({ samples }) => samples.map(({ id }) => id))
          expect(new Set(ids).size).toBe(ids.length)
        },
      ),
      { numRuns: 25 },
    )
  })

  /** Task 0 takes for ever; all others are fast. */
  const oneSlow = (request: EpisodeRequest): FakeEpisode =>
    request.taskIndex === 0 && request.rolloutId.endsWith('.3') ? { ms: 1e7, turns: [1000] } : { ms: 100 }

  it('gives up a group as a whole, drops what it had finished, and takes its task again under a new id', async () => {
    const made = world({ settings: { maxSteps: 12, maxInflight: 16, maxOffPolicySteps: 2 }, pool: { episode: oneSlow } })
    await made.run()
    const { pool, trainer } = made
    const first = pool.requests.find(({ taskIndex }) => taskIndex === 0)?.groupId
    const groups = new Set(pool.requests.filter(({ taskIndex }) => taskIndex === 0).map(({ groupId }) => groupId))
    expect(pool.cancelled).toContain(`${first}.3`)
    expect(groups.size).toBeGreaterThan(1)
    const shipped = trainer.batches.flatMap(({ samples }) => samples.map(({ id }) => groupOf(id)))
    for (const group of groups) expect(shipped).not.toContain(group)
    const total = (key: string) => stepEvents(made).reduce((sum, { values }) => sum + (values[key] ?? 0), 0)
    expect(total('staleness/cancelled_rollouts')).toBeGreaterThanOrEqual(1)
    // Three finished siblings go with each one that is cancelled.
    expect(total('staleness/dropped_with_group')).toBe(3 * total('staleness/cancelled_rollouts'))
  })

  it('leaves out a task that is too slow every time, and says so', async () => {
    const log = recordingLogger()
    const { lines } = log
    const made = world({ settings: { maxSteps: 40, maxInflight: 16, maxOffPolicySteps: 1 }, pool: { episode: oneSlow }, log })
    await made.run()
    expect(new Set(made.pool.requests.filter(({ taskIndex }) => taskIndex === 0).map(({ groupId }) => groupId)).size).toBe(4)
    expect(lines.map(({ message }) => message)).toContain('a task is too slow for max_off_policy_steps and is left out')
  })

  it('cancels, waits for the acknowledgement, and only then pauses, updates and resumes', async () => {
    const { run, engines } = world({
      settings: { maxSteps: 6, maxInflight: 16, maxOffPolicySteps: 1 },
      pool: { episode: oneSlow, cancelMs: 30 },
    })
    await run()
    const order = engines.events.join(' ')
    expect(order).toMatch(/prepare 2( acknowledged)+ pause flip 2 resume finish 2/)
    expect(order).not.toMatch(/pause[^r]*acknowledged/)
  })

  it('counts tokens that the environment wrote for nothing', async () => {
    // Two turns: tokens between them carry a version, and are masked.
    const { run, trainer } = world({ pool: { episode: () => ({ ms: 100, turns: [1, 1] }) } })
    await run()
    const [sample] = trainer.batches[0]?.samples ?? []
    expect([...(sample?.mask ?? [])]).toEqual([1, 0, 1])
  })
})

describe('groups', () => {
  const oneFails = (request: EpisodeRequest): FakeEpisode =>
    request.rolloutId.endsWith('.1')
      ? { ms: 10, error: { type: 'Boom', message: 'no' } }
      : { ms: 30, reward: Number(request.rolloutId.endsWith('.0')) }

  it('are trained without the episodes that failed, whose advantage is that of the rest', async () => {
    const made = world({ pool: { episode: oneFails }, settings: { batchSize: 12, maxSteps: 2 } })
    await made.run()
    const samples = made.trainer.batches.flatMap((batch) => batch.samples)
    expect(samples.some(({ id }) => id.includes('.1.'))).toBe(false)
    for (const { id, advantage } of samples) expect(advantage).toBeCloseTo(id.includes('.0.') ? 2 / 3 : -1 / 3, 12)
    expect(Math.abs((stepEvents(made)[0]?.values['error/all/mean'] ?? 0) - 1 / 4)).toBeLessThan(0.1)
  })

  it('that are scored together are trained whole or not at all', async () => {
    const made = world({
      pool: {
        scoring: 'group',
        episode: (request) => (request.taskIndex % 2 === 0 ? oneFails(request) : { ms: 20 }),
      },
      settings: { maxInflight: 9 },
    })
    await made.run()
    const groups = new Map<string, number>()
    for (const { samples } of made.trainer.batches)
      for (const { id } of samples) groups.set(groupOf(id), (groups.get(groupOf(id)) ?? 0) + 1)
    expect([...groups.values()].every((count) => count === 4)).toBe(true)
    // Room for nine is room for two groups of four.
    expect(made.pool.mostInFlight).toBe(8)
  })

  it.each([
    ['an empty episode', (): FakeEpisode => ({ ms: 5, turns: [0] })],
    ['a reward that is none', (): FakeEpisode => ({ ms: 5, reward: Number.NaN })],
    ['an engine that is away', (): FakeEpisode => ({ ms: 5, error: { type: 'EngineUnavailable', message: '503' } })],
  ])('%s is an error and never a sample', async (_, wrong) => {
    const made = world({ pool: { episode: (request) => (request.taskIndex < 10 ? wrong() : { ms: 50 }) } })
    await made.run()
    const tasks = made.trainer.batches.flatMap(({ samples }) =>
      samples.map(({ id }) => made.pool.requests.find(({ groupId }) => groupId === groupOf(id))?.taskIndex),
    )
    expect(Math.min(...tasks.map(Number))).toBe(10)
    expect(stepEvents(made)[0]?.values['error/all/mean']).toBeGreaterThan(0.5)
  })
})

describe('batches without anything to train', () => {
  it('are no steps, and ten in a row end the run', async () => {
    const log = recordingLogger()
    const { lines } = log
    const filters = createFilters([{ type: 'zero_advantage', enforce: true }], 100)
    const made = world({ log, change: () => ({ postFilters: filters }) })
    await expect(made.run()).rejects.toMatchObject({ code: 'BATCHES_EMPTY', message: expect.stringContaining('zero_advantage') })
    expect(made.trainer.batches).toEqual([])
    expect(lines.filter(({ message }) => message === 'a batch has nothing to train on')).toHaveLength(10)
  })

  it('do not stop a run that learns again, at level 0 either', async () => {
    const filters = createFilters([{ type: 'zero_advantage', enforce: true }], 100)
    for (const maxAsyncLevel of [0, 1]) {
      const made = world({
        settings: { maxAsyncLevel },
        change: () => ({ postFilters: filters }),
        // The first tasks teach nothing.
        pool: { episode: (request) => ({ ms: 20, reward: request.taskIndex < 6 ? 0 : Number(request.rolloutId.endsWith('.2')) }) },
      })
      await made.run()
      expect(made.trainer.batches.map(({ samples }) => samples.length)).toEqual([8, 8, 8])
    }
  })
})

describe('a failure anywhere ends the run with its cause', () => {
  const boom = () => {
    throw new Error('boom')
  }
  const rejecting = async () => boom()
  it.each<[string, (parts: OrchestratorParts) => Partial<OrchestratorParts>]>([
    ['the router', (parts) => ({ router: { ...parts.router, route: boom, endSession: () => undefined } as never })],
    ['the sender', () => ({ sender: { send: rejecting } })],
    ['the watch of weights', () => ({ watchVersions: rejecting })],
    ['a watch that ends', () => ({ watchVersions: async () => undefined })],
    ['the records', (parts) => ({ files: { ...parts.files, saveRecords: rejecting } })],
    ['the report', () => ({ report: boom })],
    ['the advantage', (parts) => ({ train: parts.train.map((one) => ({ ...one, advantage: boom })) })],
    ['a filter', () => ({ postFilters: [{ name: 'gibberish', isEnforced: true, finds: boom }] })],
    [
      'a checkpoint',
      (parts) => ({ settings: { ...parts.settings, checkpointInterval: 1 }, files: { ...parts.files, saveCheckpoint: boom } }),
    ],
    [
      'the pool',
      (parts) => ({
        train: parts.train.map((one) => ({
          ...one,
          environment: { ...one.environment, pool: { ...one.environment.pool, name: 'p', scoring: 'rollout', run: rejecting } as never },
        })),
      }),
    ],
    [
      'a record of an evaluation',
      (parts) => ({
        files: { ...parts.files, saveRecords: async (_: number, name: string) => (name.startsWith('eval') ? boom() : undefined) },
        evals: parts.train.map(({ environment }) => ({
          environment: { ...environment, split: 'eval' as const },
          groupSize: 1,
          examples: 2,
          interval: 1,
        })),
      }),
    ],
  ])('%s', async (name, change) => {
    const made = world({ change })
    await expect(made.run()).rejects.toMatchObject({
      code: 'TASK_FAILED',
      message: expect.stringMatching(name === 'a watch that ends' ? /ended by itself/ : /boom/),
    })
    expect(made.pool.inFlight).toBe(0)
    expect(made.clock.nowMs()).toBeLessThan(10_000)
  })

  it('an environment of which every episode fails', async () => {
    const made = world({ pool: { episode: () => ({ ms: 10, error: { type: 'TypeError', message: 'x is not a function' } }) } })
    await expect(made.run()).rejects.toMatchObject({
      code: 'ENVIRONMENT_INVALID',
      message: expect.stringContaining('TypeError: x is not a function'),
    })
    expect(made.pool.requests.length).toBeLessThan(70)
  })

  it('an abort is none: what is in flight is cancelled and the run resolves', async () => {
    const made = world({ settings: { maxSteps: null } })
    const controller = new AbortController()
    void made.clock.sleep(950).then(() => controller.abort())
    const training = made.trainer.run(controller.signal)
    await made.clock.run(made.orchestrator.run(controller.signal))
    await training
    expect(made.trainer.batches.length).toBeGreaterThan(5)
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
  const evaluated = (options: WorldOptions & { readonly interval?: number; readonly groupSize?: number }) =>
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
    expect(lines).toContainEqual(expect.objectContaining({ message: 'an engine failed and is not used any more' }))
    const late = made.pool.requests.filter(({ salt }) => Number(salt) >= 1)
    expect(late.every(({ baseUrl }) => baseUrl === 'http://a.test')).toBe(true)
  })

  it.each(['prepare 1', 'pause', 'flip 1', 'resume', 'finish 1'])(
    'end the run with their own text when none is left: %s',
    async (broken) => {
      const made = world({ engineUrls })
      made.engines.fails = (engine, call) => (call === broken ? new Error(`${engine} says no`) : undefined)
      await expect(made.run()).rejects.toMatchObject({
        code: 'ENGINE_FAILED',
        message: expect.stringMatching(/a\.test says no.*b\.test says no/),
      })
    },
  )
})
