/** Budget: 30 s. Two environments with ratios over 200 batches, on a clock that the test owns. */
import { stickyRouter } from '@trilithon/builtin'
import type { Router } from '@trilithon/core'
import { describe, expect, it } from 'vitest'
import { numberOf, stepEvents } from '../../src/fakes/create-world.ts'
import { FakeEngines, FakePool, FakeTrainer, fakeParts } from '../../src/fakes/fake-world.ts'
import { VirtualClock } from '../../src/fakes/virtual-clock.ts'
import type { Progress } from '../../src/progress/progress.ts'
import { Orchestrator } from '../../src/run/orchestrator.ts'
import type { OrchestratorParts } from '../../src/run/orchestrator-parts.ts'
import { fraction } from '../../src/source/random.ts'

interface MixedOptions {
  readonly steps: number
  readonly bound: number
  readonly progress?: Progress
}

/** Two environments with ratios 3 and 1; episodes of the second take ten times as long. Batches of four groups. */
async function runMixed({ steps, bound, progress }: MixedOptions) {
  const clock = new VirtualClock()
  const version = progress?.step ?? 0
  const engines = new FakeEngines(clock, version)
  const trainer = new FakeTrainer(clock, 10, version)
  const pools = [
    ['fast', 100],
    ['slow', 1000],
  ].map(
    ([name, ms]) =>
      new FakePool({
        ...{ name: String(name), clock, engines },
        episode: (request) => ({ ms: Number(ms) * (0.5 + fraction(3, numberOf(request))), turns: [1] }),
      }),
  )
  const made = fakeParts({
    ...{ clock, engines, trainer, pools, groupSize: 4, router: stickyRouter.create({ config: {} } as never) as Router },
    settings: { maxSteps: steps, batchSize: 16, maxInflight: 32, maxOffPolicySteps: bound, logInterval: 1e9 },
  })
  const parts: OrchestratorParts = {
    ...made,
    train: made.train.map((one) => ({ ...one, ratio: one.environment.name === 'fast' ? 3 : 1 })),
    ...(progress === undefined ? {} : { progress, isResume: true }),
  }
  const controller = new AbortController()
  const training = trainer.run(controller.signal)
  await clock.run(new Orchestrator(parts).run(controller.signal).finally(() => controller.abort()))
  await training
  const values = stepEvents(made).map((event) => event.values)
  const count = (name: string) => trainer.batches.flatMap(({ samples }) => samples).filter(({ environment }) => environment === name).length
  const sum = (key: string) => values.reduce((total, one) => total + (one[key] ?? 0), 0)
  return { values, trainer, count, sum, slow: count('slow') / (count('slow') + count('fast')) }
}

describe('ratios of environments, one ten times as slow', { timeout: 60_000 }, () => {
  it('are those of what is trained', async () => {
    const { slow, values, count } = await runMixed({ steps: 200, bound: 8 })
    expect(count('slow') + count('fast')).toBe(3200)
    // The slow groups that are under way at the end are missing: 8 of 800 at most.
    expect(slow).toBeGreaterThan(0.24)
    expect(slow).toBeLessThan(0.255)
    const last = values.findLast((one) => 'batch/slow' in one && 'batch/fast' in one)
    for (const name of ['slow', 'fast'])
      for (const key of ['reward', 'seq_len', 'decode_len', 'num_turns', 'is_truncated', 'timing'].map((one) =>
        one === 'timing' ? `timing/${name}/total` : `${one}/${name}`,
      ))
        expect(last).toHaveProperty([`${key}/mean`])
    expect((last?.['batch/slow'] ?? 0) + (last?.['batch/fast'] ?? 0)).toBeCloseTo(1, 12)
  })

  it.each([4, 2])('hold where much of what is slow is cancelled for its age, too: bound %i', async (bound) => {
    const { slow, sum } = await runMixed({ steps: 200, bound })
    expect(sum('staleness/cancelled_rollouts')).toBeGreaterThan(300)
    expect(sum('staleness/abandoned_tasks')).toBeGreaterThan(10)
    // By chance, and without others for those that are left out, it would be 0.21 and 0.14.
    expect(slow).toBeGreaterThan(0.235)
    expect(slow).toBeLessThan(0.255)
  })

  it('hold over a run that goes on', async () => {
    const first = await runMixed({ steps: 60, bound: 3 })
    const progress = first.trainer.batches.at(-1)?.progress
    expect(progress?.source.environments.slow?.owed).toBeGreaterThanOrEqual(0)
    const second = await runMixed({ steps: 120, bound: 3, ...(progress === undefined ? {} : { progress }) })
    const [slow, fast] = ['slow', 'fast'].map((name) => first.count(name) + second.count(name)) as [number, number]
    expect(slow + fast).toBe(120 * 16)
    expect(slow / (slow + fast)).toBeGreaterThan(0.215)
    expect(slow / (slow + fast)).toBeLessThan(0.26)
  })
})
