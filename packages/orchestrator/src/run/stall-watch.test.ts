import { stickyRouter } from '@trilithon/builtin'
import type { Router } from '@trilithon/core'
import type { EpisodeRequest } from '@trilithon/environments'
import { recordingLogger } from '@trilithon/testing'
import { expect, it } from 'vitest'
import { createWorld, type WorldOptions } from '../fakes/create-world.ts'
import type { FakeEpisode } from '../fakes/fake-world.ts'

const world = (options: Omit<WorldOptions, 'router'> = {}) =>
  createWorld({ router: stickyRouter.create({ config: {} } as never) as Router, ...options })

/** The second episode of task 2 waits for ever. */
const oneHangs = ({ taskIndex, rolloutId }: EpisodeRequest): FakeEpisode =>
  taskIndex === 2 && rolloutId.endsWith('.1') ? { ms: Number.POSITIVE_INFINITY } : { ms: 100 }
const warnings = ({ events }: ReturnType<typeof world>) => events.flatMap((event) => (event.kind === 'warning' ? [event.message] : []))

it.each(['rollout', 'group'] as const)(
  'an episode that hangs is told of after a minute and ends the run later, scored by %s',
  async (scoring) => {
    const log = recordingLogger()
    const made = world({ log, settings: { maxAsyncLevel: 0, stallTimeoutS: 300 }, pool: { scoring, episode: oneHangs } })
    await expect(made.run()).rejects.toMatchObject({
      code: 'ENVIRONMENT_INVALID',
      path: 'orchestrator.train.env',
      message: expect.stringMatching(
        /^nothing has come of \d+ episodes in flight for 30\d s: .* task 2 of fake \(episode g\d\.\d\), begun 30\d s ago$/,
      ),
      hint: expect.stringMatching(/Set timeout of the environment fake.*stall_timeout_seconds/),
    })
    expect(warnings(made)).toEqual([
      expect.stringMatching(/for 6\d s: .*task 2 of fake.* begun 6\d s ago\. Set timeout .*the run ends after 300 s/),
    ])
    expect(log.lines.filter(({ level }) => level === 'warn')).toHaveLength(1)
    expect(made.clock.nowMs()).toBeLessThan(305_000)
    expect(made.pool.inFlight).toBe(0)
  },
)

it('without a bound it is told of once, and the run waits', async () => {
  const made = world({ settings: { maxAsyncLevel: 0 }, pool: { episode: oneHangs } })
  await expect(made.run()).rejects.toThrow(/nothing has come of it/)
  expect(warnings(made)).toHaveLength(1)
})

it('turns are signs of life, of any episode', async () => {
  const turns = Array.from({ length: 40 }, () => 1)
  const made = world({
    settings: { maxAsyncLevel: 0, maxSteps: 1, stallTimeoutS: 55 },
    pool: { episode: ({ rolloutId }) => (rolloutId === 'g0.0' ? { ms: 800_000, turns: [1, 1] } : { ms: 800_000, turns }) },
  })
  await made.run()
  expect(made.clock.nowMs()).toBeGreaterThan(799_000)
  expect(warnings(made)).toEqual([])
})

it('a long turn is none while an engine computes it', async () => {
  const made = world({ settings: { maxSteps: 1, stallTimeoutS: 100 }, pool: { episode: () => ({ ms: 800_000 }) } })
  const idle = await made.engines.load()
  made.engines.load = async () => ({ ...idle, running: 1 })
  await made.run()
  expect(made.trainer.batches).toHaveLength(1)
  expect(warnings(made)).toEqual([])
})

it('nor is an update that takes long', async () => {
  const made = world({ settings: { maxSteps: 3, stallTimeoutS: 100 }, pool: { episode: () => ({ ms: 20_000 }) } })
  made.engines.callMs = 90_000
  await made.run()
  expect(made.trainer.batches).toHaveLength(3)
  expect(warnings(made)).toEqual([])
})
