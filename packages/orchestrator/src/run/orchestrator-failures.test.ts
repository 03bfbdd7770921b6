import { stickyRouter } from '@trilithon/builtin'
import type { Router } from '@trilithon/core'
import type { EpisodeRequest } from '@trilithon/environments'
import { recordingLogger } from '@trilithon/testing'
import { describe, expect, it } from 'vitest'
import { createWorld, groupOf, stepEvents, type WorldOptions } from '../fakes/create-world.ts'
import type { FakeEpisode } from '../fakes/fake-world.ts'
import { createFilters } from '../filters/rollout-filter.ts'
import type { OrchestratorParts } from './orchestrator-parts.ts'

const world = (options: Omit<WorldOptions, 'router'> = {}) =>
  createWorld({ router: stickyRouter.create({ config: {} } as never) as Router, ...options })

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
    const made = world({
      pool: { episode: () => ({ ms: 10, error: { type: 'TypeError', message: 'x is not a function' } }) },
      change: ({ train }) => ({
        train: train.map((one) => ({ ...one, environment: { ...one.environment, logs: '/out/logs/envs/train/fake/env_worker_*.log' } })),
      }),
    })
    await expect(made.run()).rejects.toMatchObject({
      code: 'ENVIRONMENT_INVALID',
      message: expect.stringContaining('TypeError: x is not a function'),
      hint: 'Look into /out/logs/envs/train/fake/env_worker_*.log.',
    })
    expect(made.pool.requests.length).toBeLessThan(70)
  })

  it('engines that stay away, much later, with their own code', async () => {
    const made = world({ pool: { episode: () => ({ ms: 1000, error: { type: 'EngineUnavailable', message: 'connect ECONNREFUSED' } }) } })
    await expect(made.run()).rejects.toMatchObject({ code: 'ENGINE_FAILED', message: expect.stringContaining('ECONNREFUSED') })
    expect(made.pool.requests.length).toBeGreaterThanOrEqual(500)
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

  it('nor is an update that fails behind an abort: trainer and engines end too', async () => {
    const made = world({ settings: { maxSteps: null } })
    const controller = new AbortController()
    made.engines.callMs = 40
    made.engines.fails = (_, call) => {
      if (call !== 'prepare 3') return undefined
      controller.abort()
      return new Error('the version has gone')
    }
    const training = made.trainer.run(controller.signal)
    await made.clock.run(made.orchestrator.run(controller.signal))
    await training
    expect(made.trainer.batches.length).toBeGreaterThan(2)
    expect(made.pool.inFlight).toBe(0)
  })
})
