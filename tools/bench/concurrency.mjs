// @ts-check
/**
 * What adaptive concurrency pays: the orchestrator with `adaptive_concurrency` against the same without, on episodes with a long tail.
 *
 *   node tools/bench/concurrency.mjs [--steps 100] [--seeds 1,2,3]     (after ./trilithon build)
 *
 * Only engines, trainer and clock are played: an episode takes a log-normal time (p50 one second, p99 ten times that), batch 128, groups of 4, level 1. Time is
 * virtual, so the figures are those of the schedule and repeat exactly. The first quarter of the steps is not counted.
 */
import { parseArgs } from 'node:util'

/** @type {typeof import('@trilithon/orchestrator/fakes')} */
const { runLoadedWorld } = await import(String(new URL('../../packages/orchestrator/dist/fakes/index.js', import.meta.url)))
/** @type {typeof import('@trilithon/builtin')} */
const { stickyRouter } = await import(String(new URL('../../packages/builtin/dist/index.js', import.meta.url)))

const { values } = parseArgs({ options: { steps: { type: 'string', default: '100' }, seeds: { type: 'string', default: '1,2,3' } } })
const common = { batchSize: 128, groupSize: 4, level: 1, steps: Number(values.steps) }
/** @type {readonly (readonly [string, { trainerMs: number, maxInflight: number, bound: number, capacity: number | null, saturation: number | null }])[]} */
const worlds = [
  ['a step of 2.5 s, 512 in flight', { trainerMs: 2500, maxInflight: 512, bound: 8, capacity: null, saturation: null }],
  ['the same at bound 2', { trainerMs: 2500, maxInflight: 512, bound: 2, capacity: null, saturation: null }],
  ['KV for 96, 256 in flight', { trainerMs: 200, maxInflight: 256, bound: 8, capacity: 96, saturation: null }],
  ['computes 96 at once, 512 in flight', { trainerMs: 200, maxInflight: 512, bound: 8, capacity: null, saturation: 96 }],
  ['no limit but 512 in flight', { trainerMs: 200, maxInflight: 512, bound: 8, capacity: null, saturation: null }],
]
const adaptive = { initialRollouts: null, minRollouts: null, kvCacheUsageLimit: 0.95 }
for (const [name, world] of worlds)
  for (const seed of values.seeds.split(',').map(Number))
    for (const [kind, settings] of /** @type {const} */ ([
      ['fixed', null],
      ['adaptive', adaptive],
    ])) {
      const router = /** @type {import('@trilithon/core').Router} */ (
        await stickyRouter.create(/** @type {never} */ ({ config: {}, needs: {} }))
      )
      const { stepsPerMinute, meanLag, maxLag, wasted, preemptionsPerStep, inFlight } = await runLoadedWorld({
        ...{ ...common, ...world, router, seed, adaptive: settings },
      })
      process.stdout.write(
        `${name}, seed ${seed}, ${kind}: ${stepsPerMinute.toFixed(2)} steps/min; lag mean ${meanLag.toFixed(2)}, max ${maxLag}; ` +
          `wasted ${(100 * wasted).toFixed(1)}%; preemptions/step ${preemptionsPerStep.toFixed(0)}; in flight ${inFlight.toFixed(0)}\n`,
      )
    }
