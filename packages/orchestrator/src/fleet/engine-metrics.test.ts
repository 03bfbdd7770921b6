import { silentLogger } from '@trilithon/core'
import { expect, it } from 'vitest'
import { FakeEngines } from '../fakes/fake-world.ts'
import { VirtualClock } from '../fakes/virtual-clock.ts'
import type { EngineLoad } from './engine-admin.ts'
import { EngineMetrics } from './engine-metrics.ts'
import { LiveFleet } from './live-fleet.ts'

const idle: EngineLoad = { running: 0, waiting: 0, kvUsage: 0, prefixQueries: 0, prefixHits: 0, generatedTokens: 0 }

it('tells load, imbalance, and rates since the look before, under prime-rl names', async () => {
  const clock = new VirtualClock()
  const engines = new FakeEngines(clock)
  const urls = ['http://a.test', 'http://b.test']
  const fleet = new LiveFleet(
    urls.map((url) => ({ url, adminUrl: url, ranks: 1 })),
    clock,
  )
  let look = 0
  const loads: EngineLoad[][] = [
    [
      { ...idle, running: 6, kvUsage: 0.5, generatedTokens: 100, prefixQueries: 10 },
      { ...idle, running: 2, waiting: 4, kvUsage: 0.1, generatedTokens: 50 },
    ],
    // 1,000 and 500 tokens in five seconds; 20 of 40 prompt tokens were there.
    [
      { ...idle, running: 1, generatedTokens: 1100, prefixQueries: 40, prefixHits: 20 },
      { ...idle, running: 1, generatedTokens: 550, prefixQueries: 10 },
    ],
    // The first began again: its counters did too.
    [
      { ...idle, generatedTokens: 5 },
      { ...idle, generatedTokens: 600 },
    ],
  ]
  const admin = Object.assign(engines, { load: async (engine: string) => loads[Math.floor(look++ / 2)]?.[urls.indexOf(engine)] ?? idle })
  const metrics = new EngineMetrics({ admin, fleet, clock, log: silentLogger })
  const controller = new AbortController()
  const seen: Readonly<Record<string, number>>[] = []
  const watch = async () => {
    for (const _ of loads) {
      await clock.sleep(1000)
      seen.push(metrics.values)
      await clock.sleep(4000)
    }
    controller.abort()
  }
  await clock.run(Promise.all([metrics.run(controller.signal), watch()]))
  expect(seen[0]).toEqual({
    'inference/agg/running_requests': 8,
    'inference/agg/waiting_requests': 4,
    'inference/agg/running_imbalance': 0.5,
    'inference/agg/waiting_imbalance': 1,
    'inference/agg/kv_cache_usage_mean': 0.3,
    'inference/agg/kv_cache_usage_max': 0.5,
  })
  expect(seen[1]).toMatchObject({
    'inference/agg/throughput': 300,
    'inference/agg/prefix_cache_hit_rate': 0.5,
    'inference/agg/running_imbalance': 0,
  })
  expect(seen[2]).not.toHaveProperty(['inference/agg/throughput'])
})
