import { describe, expect, it } from 'vitest'
import { FakeEngines, type FakePartsOptions, FakePool, type FakePoolOptions, FakeTrainer, fakeParts } from '../__fixtures__/fake-world.ts'
import { VirtualClock } from '../__fixtures__/virtual-clock.ts'
import { mix } from '../source/random.ts'
import { Orchestrator } from './orchestrator.ts'

const world = (
  options: Partial<Omit<FakePartsOptions, 'pools'>> & { readonly pool?: Partial<FakePoolOptions>; readonly stepMs?: number } = {},
) => {
  const clock = new VirtualClock()
  const engines = new FakeEngines(clock)
  const trainer = new FakeTrainer(clock, options.stepMs ?? 10)
  const pool = new FakePool({
    clock,
    engines,
    episode: ({ rolloutId }) => ({ ms: 50 + (mix(1, Number(rolloutId.split('.')[1])) % 50) }),
    ...options.pool,
  })
  const parts = fakeParts({ clock, engines, trainer, pools: [pool], ...options })
  const orchestrator = new Orchestrator(parts)
  const run = async () => {
    const controller = new AbortController()
    const training = trainer.run(controller.signal)
    await clock.run(orchestrator.run(controller.signal).finally(() => controller.abort()))
    await training
  }
  return { clock, engines, trainer, pool, parts, orchestrator, run }
}

describe('a run', () => {
  it('ships its batches in order, of the size asked for', async () => {
    const { run, trainer, parts } = world()
    await run()
    expect(trainer.batches.map(({ step, samples }) => [step, samples.length])).toEqual([
      [0, 8],
      [1, 8],
      [2, 8],
    ])
    const ids = trainer.batches.flatMap(({ samples }) => samples.map(({ id }) => id))
    expect(new Set(ids).size).toBe(ids.length)
    expect([...parts.records.keys()]).toEqual([0, 1, 2].map((step) => `step_${step}/train_rollouts.jsonl`))
  })
})
