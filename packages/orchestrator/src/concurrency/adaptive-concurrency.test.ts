import { stickyRouter } from '@trilithon/builtin'
import type { Router } from '@trilithon/core'
import { describe, expect, it } from 'vitest'
import { createWorld, numberOf, stepEvents } from '../fakes/create-world.ts'
import { Progress } from '../progress/progress.ts'
import { fraction } from '../source/random.ts'
import type { AdaptiveSettings } from './adaptive-concurrency.ts'

const adaptive: AdaptiveSettings = { initialRollouts: null, minRollouts: null, kvCacheUsageLimit: 0.95 }
const router = () => stickyRouter.create({ config: {} } as never) as Router

describe('a limit', () => {
  const options = {
    settings: { maxSteps: 12, batchSize: 8, maxInflight: 32, adaptiveConcurrency: { ...adaptive, initialRollouts: 8 }, pollsEngines: true },
    stepMs: 400,
    pool: { episode: (request: Parameters<typeof numberOf>[0]) => ({ ms: 50 + 200 * fraction(4, numberOf(request)) }) },
  }

  it('is told with every step, and why it moved; without the table there is none', async () => {
    const made = createWorld({ router: router(), ...options })
    await made.run()
    for (const { values } of stepEvents(made))
      expect(Object.keys(values).filter((key) => key.startsWith('concurrency/moves/'))).toHaveLength(7)
    expect(stepEvents(made).at(-1)?.values['concurrency/limit_train']).toBeLessThan(9)
    const without = createWorld({ router: router(), ...options, settings: { ...options.settings, adaptiveConcurrency: null } })
    await without.run()
    expect(stepEvents(without).flatMap(({ values }) => Object.keys(values).filter((key) => key.startsWith('concurrency')))).toEqual([])
  })

  it('begins no group that would not fit as a whole', async () => {
    const begun = new Map<string, Set<number>>()
    const made = createWorld({
      ...{ router: router(), ...options, stepMs: 10 },
      settings: { ...options.settings, maxInflight: 11 },
      pool: {
        episode: (request) => {
          const { groupId } = request
          begun.set(groupId, (begun.get(groupId) ?? new Set()).add(made.clock.nowMs()))
          return options.pool.episode(request)
        },
      },
    })
    await made.run()
    expect(begun.size).toBeGreaterThan(20)
    for (const times of begun.values()) expect(times.size).toBe(1)
    expect(made.pool.mostInFlight).toBeLessThanOrEqual(11)
  })

  it('is the same on the same clock', async () => {
    const values = async () => {
      const made = createWorld({ router: router(), ...options })
      await made.run()
      return stepEvents(made).map((event) => event.values)
    }
    expect(await values()).toEqual(await values())
  })

  it('is taken up where a run goes on', async () => {
    const first = createWorld({ router: router(), ...options })
    await first.run()
    const progress = Progress.parse(JSON.parse(JSON.stringify(first.trainer.batches.at(-1)?.progress)))
    expect(progress.concurrency?.train_rollouts).toBeLessThan(9)
    const saved = { ...progress, concurrency: { train_rollouts: 20, total_rollouts: 24 } }
    const second = createWorld({
      ...{ router: router(), ...options, version: 12, stepMs: 1 },
      settings: { ...options.settings, maxSteps: 13 },
      change: () => ({ progress: saved, isResume: true }),
    })
    await second.run()
    expect(stepEvents(second)[0]?.values).toMatchObject({ 'concurrency/limit_train': 20, 'concurrency/limit_total': 24 })
    expect(second.pool.mostInFlight).toBe(20)
  })

  it('of what the engines bear holds evaluations too', async () => {
    const made = createWorld({
      ...{ router: router(), ...options, stepMs: 100 },
      settings: { ...options.settings, maxInflight: 64, maxSteps: 60 },
      pool: { ...options.pool, evalTasks: 64 },
      change: (parts) => ({
        evals: parts.train.map(({ environment }) => ({
          environment: { ...environment, name: 'test', split: 'eval' as const },
          ...{ groupSize: 1, examples: 64, interval: 1000 },
        })),
      }),
    })
    let preemptions = 0
    made.engines.load = async () => ({
      ...{ running: made.pool.inFlight, waiting: 0, kvUsage: 0.5, prefixQueries: 0, prefixHits: 0, generatedTokens: 0 },
      preemptions: preemptions++,
    })
    await made.run()
    const totals = stepEvents(made).flatMap(({ values }) => values['concurrency/limit_total'] ?? [])
    expect(totals[0]).toBe(64)
    expect(totals.at(-1)).toBeLessThan(64)
    expect(made.pool.requests.filter(({ split }) => split === 'eval')).toHaveLength(64)
  })
})
