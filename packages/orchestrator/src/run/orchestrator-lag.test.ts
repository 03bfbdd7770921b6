import { stickyRouter } from '@trilithon/builtin'
import type { Router } from '@trilithon/core'
import type { EpisodeRequest } from '@trilithon/environments'
import { recordingLogger } from '@trilithon/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createWorld, groupOf, lagIn, numberOf, stepEvents, type WorldOptions } from '../fakes/create-world.ts'
import type { FakeEpisode } from '../fakes/fake-world.ts'
import { fraction } from '../source/random.ts'

const world = (options: Omit<WorldOptions, 'router'> = {}) =>
  createWorld({ router: stickyRouter.create({ config: {} } as never) as Router, ...options })

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
      for (const sample of samples) expect(lagIn(step, sample)).toBe(0)
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
        settings: { maxSteps: 14, batchSize: 64, maxInflight: 64, maxAsyncLevel },
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
          const lags = trainer.batches.flatMap(({ step, samples }) => samples.map((sample) => lagIn(step, sample)))
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

  it.each([
    ['pauses, updates and resumes', false, 'pause flip 2 resume'],
    ['lets engines change by themselves', true, 'exchange 2'],
  ])('cancels, waits for the acknowledgement, and only then %s', async (_, betweenSteps, calls) => {
    const { run, engines } = world({
      settings: { maxSteps: 6, maxInflight: 16, maxOffPolicySteps: 1 },
      pool: { episode: oneSlow, cancelMs: 30 },
    })
    engines.betweenSteps = () => betweenSteps
    await run()
    const order = engines.events.join(' ')
    expect(order).toMatch(new RegExp(`prepare 2( acknowledged)+ ${calls} finish 2`))
    expect(order).not.toMatch(/(pause[^r]*|prepare \d+ exchange \d+ )acknowledged/)
  })

  it('counts tokens that the environment wrote for nothing', async () => {
    // Two turns: tokens between them carry a version, and are masked.
    const { run, trainer } = world({ pool: { episode: () => ({ ms: 100, turns: [1, 1] }) } })
    await run()
    const [sample] = trainer.batches[0]?.samples ?? []
    expect([...(sample?.mask ?? [])]).toEqual([1, 0, 1])
  })
})
