/** Budget: 60 s. What adaptive concurrency pays, as ratios against a fixed number of episodes in flight; figures in `tools/bench/concurrency.mjs`. */
import { stickyRouter } from '@trilithon/builtin'
import type { Router } from '@trilithon/core'
import { describe, expect, it } from 'vitest'
import { type LoadedWorldOptions, runLoadedWorld } from '../../src/fakes/index.ts'

const adaptive = { initialRollouts: null, minRollouts: null, kvCacheUsageLimit: 0.95 }
const router = () => stickyRouter.create({ config: {} } as never) as Router
const run = (more: Partial<LoadedWorldOptions>) =>
  runLoadedWorld({
    ...{ router: router(), seed: 1, steps: 48, batchSize: 32, groupSize: 4, maxInflight: 128, level: 1, bound: 8, trainerMs: 200 },
    ...{ capacity: null, adaptive: null },
    ...more,
  })
const both = async (more: Partial<LoadedWorldOptions>) => [await run(more), await run({ ...more, adaptive })] as const
const moves = (values: readonly Readonly<Record<string, number>>[], reason: string) =>
  values.reduce((sum, one) => sum + (one[`concurrency/moves/${reason}`] ?? 0), 0)

describe('against as many episodes as allowed', { timeout: 60_000 }, () => {
  it('where the trainer is slow, batches are younger and no fewer', async () => {
    const [fixed, own] = await both({ trainerMs: 2500 })
    expect(own.stepsPerMinute / fixed.stepsPerMinute).toBeGreaterThan(0.97)
    expect(own.meanLag / fixed.meanLag).toBeLessThan(0.75)
    expect(moves(own.values, 'early')).toBeGreaterThan(0)
  })

  it('where KV runs out, steps are faster, and less is computed for nothing', async () => {
    const [fixed, own] = await both({ capacity: 24, maxInflight: 72 })
    expect(own.stepsPerMinute / fixed.stepsPerMinute).toBeGreaterThan(2)
    expect(own.preemptionsPerStep / fixed.preemptionsPerStep).toBeLessThan(0.25)
    expect(own.wasted).toBeLessThan(fixed.wasted)
    expect(moves(own.values, 'preempted')).toBeGreaterThan(0)
  })

  it('where engines are saturated and say nothing, batches are younger and no fewer', async () => {
    const [fixed, own] = await both({ saturation: 24 })
    expect(own.stepsPerMinute / fixed.stepsPerMinute).toBeGreaterThan(0.97)
    expect(own.meanLag / fixed.meanLag).toBeLessThan(0.75)
    expect(moves(own.values, 'saturated')).toBeGreaterThan(0)
  })

  it('where nothing speaks against it, all that is allowed is used', async () => {
    const [, own] = await both({ adaptive })
    expect(own.values.at(-1)?.['concurrency/limit_train']).toBe(128)
    expect(moves(own.values, 'late')).toBeGreaterThan(2)
    for (const reason of ['early', 'saturated', 'preempted', 'queued', 'kv_full']) expect(moves(own.values, reason)).toBe(0)
  })

  it('at level 0 no step is slower, and nothing crosses a version', async () => {
    const [fixed, own] = await both({ level: 0, steps: 12 })
    expect(own.stepsPerMinute / fixed.stepsPerMinute).toBeGreaterThan(0.99)
    expect(own.maxLag).toBe(0)
  })
})
