import { stickyRouter } from '@trilithon/builtin'
import { lagOf, type Router } from '@trilithon/core'
import { recordingLogger } from '@trilithon/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { numberOf } from '../fakes/create-world.ts'
import { FakeTrainer, fakeParts } from '../fakes/fake-world.ts'
import { MortalEngines, type MortalEnginesOptions, MortalPool } from '../fakes/mortal-engines.ts'
import { VirtualClock } from '../fakes/virtual-clock.ts'
import { fraction } from '../source/random.ts'
import { Orchestrator } from './orchestrator.ts'
import type { RunSettings } from './orchestrator-parts.ts'

interface Death {
  readonly engine: number
  readonly atMs: number
  /** Until another process answers; Infinity: never. */
  readonly downMs: number
}

interface Case {
  readonly engines?: number
  readonly deaths: readonly Death[]
  readonly settings?: Partial<RunSettings>
  readonly stepMs?: number
  readonly of?: Partial<MortalEnginesOptions>
  readonly evaluates?: boolean
}

const seconds = 60

function world({ engines: count = 1, deaths, settings, stepMs = 200, of, evaluates = false }: Case) {
  const clock = new VirtualClock()
  const urls = Array.from({ length: count }, (_, index) => `http://${index}.test`)
  const trainer = new FakeTrainer(clock, stepMs)
  const engines = new MortalEngines({ clock, urls, published: () => trainer.published, ...of })
  const pool = new MortalPool({
    ...{ clock, engines, evalTasks: 4 },
    episode: (request) => ({ ms: 100 + 500 * fraction(7, numberOf(request)), turns: [3, 2] }),
  })
  const log = recordingLogger()
  const parts = fakeParts({
    ...{ clock, engines: Object.assign(engines, { served: 0 }) as never, trainer, pools: [pool as never], engineUrls: urls, log },
    router: stickyRouter.create({ config: {} } as never) as Router,
    settings: { maxSteps: 8, recoveryS: seconds, ...settings },
  })
  const evals = parts.train.map(({ environment }) => ({
    environment: { ...environment, name: 'test', split: 'eval' as const },
    ...{ groupSize: 2, examples: 4, interval: 4 },
  }))
  const orchestrator = new Orchestrator({ ...parts, evals: evaluates ? evals : [] })
  const run = async () => {
    const controller = new AbortController()
    for (const { engine, atMs, downMs } of deaths) {
      const url = urls[engine % count] ?? ''
      void clock.sleep(atMs, controller.signal).then(async () => {
        if (controller.signal.aborted) return
        engines.kill(url)
        if (downMs === Number.POSITIVE_INFINITY) return
        await clock.sleep(downMs, controller.signal)
        engines.start(url)
      })
    }
    const training = trainer.run(controller.signal)
    await clock.run(orchestrator.run(controller.signal).finally(() => controller.abort()))
    await training
  }
  return { ...{ clock, engines, pool, trainer, parts, orchestrator, urls, run }, lines: log.lines }
}

/** What must hold of every run, whoever died in it. */
function check({ trainer, pool, engines, parts, urls }: ReturnType<typeof world>, { steps, bound }: { steps: number; bound: number }) {
  expect(trainer.batches.map(({ step }) => step)).toEqual(Array.from({ length: steps }, (_, index) => index))
  const samples = trainer.batches.flatMap((batch) => batch.samples.map((sample) => ({ ...sample, step: batch.step })))
  // Each sample once, and each rollout in one batch.
  const ids = samples.map(({ id }) => id)
  expect(ids.length).toBe(8 * steps)
  expect(new Set(ids.map((id) => id.split('.').slice(0, 2).join('.'))).size).toBe(8 * steps)
  const salts = new Map(pool.requests.map(({ groupId, salt }) => [groupId, Number(salt)]))
  for (const { id, versions, mask, contextVersionsMin, step } of samples) {
    expect(lagOf(step, versions, mask)).toBeLessThanOrEqual(bound)
    const salt = salts.get(id.split('.')[0] ?? '') ?? Number.POSITIVE_INFINITY
    // Keys under a salt were computed by its version or a later one, and so were tokens.
    for (const [index, isSampled] of mask.entries())
      if (isSampled !== 0) {
        expect(contextVersionsMin[index]).toBeGreaterThanOrEqual(salt)
        expect(versions[index]).toBeGreaterThanOrEqual(contextVersionsMin[index] ?? 0)
      }
  }
  for (const url of urls)
    if (parts.fleet.stateOf(url) === 'ready' && engines.processOf(url) !== undefined) expect(engines.processOf(url)?.isPaused).toBe(false)
}

describe('an engine that dies and comes back', () => {
  it('serves the version of the run before it is used again', async () => {
    const made = world({ deaths: [{ engine: 0, atMs: 3000, downMs: 5000 }], settings: { maxSteps: 20 } })
    await made.run()
    check(made, { steps: 20, bound: 8 })
    const after = made.engines.events.slice(made.engines.events.indexOf('http://0.test dies'))
    const version = made.trainer.batches.findLast(({ atMs }) => atMs <= 3000)?.step ?? 0
    expect(version).toBeGreaterThan(2)
    expect(
      after
        .filter((event) => !event.endsWith(' version'))
        .slice(1, 7)
        .join(', '),
    ).toMatch(
      /models, http:\/\/0\.test prepare (\d+), http:\/\/0\.test pause, http:\/\/0\.test flip \1, http:\/\/0\.test resume, http:\/\/0\.test finish \1/,
    )
    expect(made.lines.map(({ message }) => message)).toEqual(
      expect.arrayContaining(['no engine is left: the run waits for one to come back', 'an engine is used again']),
    )
    // What ran there is no error of anybody: it was run again.
    expect(made.orchestrator.state.dispatcher.finishedTrain).toBeGreaterThanOrEqual(160)
  })

  it.each([true, false])('is brought there between two steps where it offers that (%s)', async (betweenSteps) => {
    const made = world({ deaths: [{ engine: 0, atMs: 3000, downMs: 5000 }], settings: { maxSteps: 20 }, of: { betweenSteps } })
    await made.run()
    check(made, { steps: 20, bound: 8 })
    expect(made.engines.events.some((event) => event.includes('exchange'))).toBe(betweenSteps)
  })

  it('so fast that nobody saw it go is known by its version', async () => {
    const made = world({ deaths: [{ engine: 0, atMs: 3000, downMs: 1 }], stepMs: 2500 })
    await made.run()
    check(made, { steps: 8, bound: 8 })
    expect(made.lines).toContainEqual(
      expect.objectContaining({ fields: expect.objectContaining({ reason: 'another process answers in its place' }) }),
    )
  })

  it('and whose weights are those of its folder needs nothing', async () => {
    const made = world({ deaths: [{ engine: 0, atMs: 150, downMs: 4000 }], settings: { maxSteps: 2 } })
    await made.run()
    check(made, { steps: 2, bound: 8 })
    const after = made.engines.events.slice(made.engines.events.indexOf('http://0.test dies'))
    expect(after.find((event) => /prepare|resume/.test(event))).toBe('http://0.test resume')
  })

  it('with another model is not used, and the run ends when nothing else comes', async () => {
    const made = world({ deaths: [{ engine: 0, atMs: 1000, downMs: 2000 }], settings: { checkedModel: 'fake' } })
    made.engines.models = async () => ['another']
    await expect(made.run()).rejects.toMatchObject({ code: 'ENGINE_FAILED', message: expect.stringContaining('it does not serve fake') })
  })

  it('does not make an evaluation lose an episode', async () => {
    const made = world({ deaths: [{ engine: 0, atMs: 300, downMs: 4000 }], evaluates: true })
    await made.run()
    check(made, { steps: 8, bound: 8 })
    for (const step of [0, 4, 8]) {
      const records = made.parts.records.get(`step_${step}/eval_rollouts_test.jsonl`) as readonly { readonly error?: unknown }[]
      expect(records).toHaveLength(8)
      expect(records.every(({ error }) => error === undefined || error === null)).toBe(true)
    }
  })

  it('while another one serves: its episodes run there, and it is used again', async () => {
    const made = world({ engines: 2, deaths: [{ engine: 0, atMs: 1500, downMs: 4000 }], settings: { maxSteps: 20 } })
    await made.run()
    check(made, { steps: 20, bound: 8 })
    expect(made.lines.map(({ message }) => message)).not.toContain('no engine is left: the run waits for one to come back')
    const used = made.pool.requests.slice(-20).filter(({ baseUrl }) => baseUrl === 'http://0.test')
    expect(used.length).toBeGreaterThan(3)
  })
})

it('what an engine ran when it died is run by another one, not by it when it is back', async () => {
  const made = world({ engines: 2, deaths: [{ engine: 0, atMs: 300, downMs: 8000 }], stepMs: 6000, settings: { maxSteps: 3 } })
  await made.run()
  check(made, { steps: 3, bound: 8 })
  const again = made.pool.requests.filter(
    ({ rolloutId }, index) => made.pool.requests.findIndex((one) => one.rolloutId === rolloutId) < index,
  )
  expect(again.length).toBeGreaterThan(0)
  expect(new Set(again.map(({ baseUrl }) => baseUrl))).toEqual(new Set(['http://1.test']))
})

it('an engine that is back while others are being updated waits for the end of that', async () => {
  const made = world({
    ...{ engines: 2, deaths: [{ engine: 0, atMs: 1500, downMs: 2500 }], stepMs: 10 },
    ...{ settings: { maxSteps: 12 }, of: { callMs: () => 250, keep: 4 } },
  })
  await made.run()
  check(made, { steps: 12, bound: 8 })
  const after = made.engines.events.slice(made.engines.events.indexOf('http://0.test dies'))
  const calls = after.filter((event) => /models|prepare|finish/.test(event))
  const back = calls.indexOf('http://0.test models')
  expect(back).toBeGreaterThan(0)
  expect(calls[back - 1]).toMatch(/1\.test finish/)
  expect(calls.slice(back, back + 3).join(' ')).toMatch(/0\.test models \S+0\.test prepare \d+ \S+0\.test finish/)
})

it('an engine that is silent while it is updated is not lost when it answers behind that', async () => {
  const made = world({ engines: 2, deaths: [], settings: { maxSteps: 4 }, of: { callMs: () => 6000 } })
  let isBusy = false
  const { prepare } = made.engines
  made.engines.prepare = async (...call) => {
    isBusy = true
    return prepare.call(made.engines, ...call).finally(() => {
      isBusy = false
    })
  }
  made.engines.isHealthy = async () => !isBusy
  await made.run()
  check(made, { steps: 4, bound: 8 })
  expect(made.lines.map(({ message }) => message)).not.toContain('an engine is lost; what it ran runs elsewhere')
})

it('an engine whose resume is lost is resumed by its watch (known fault H106)', async () => {
  let lost = 0
  const loses = (url: string, call: string) => url === 'http://0.test' && call === 'resume' && lost++ === 2
  const made = world({ engines: 2, deaths: [], settings: { maxSteps: 20 }, of: { loses } })
  await made.run()
  check(made, { steps: 20, bound: 8 })
  expect(lost).toBeGreaterThan(3)
  expect(made.urls.map((url) => [made.parts.fleet.stateOf(url), made.engines.processOf(url)?.isPaused])).toEqual([
    ['ready', false],
    ['ready', false],
  ])
})

describe('engines that do not come back', () => {
  it('end the run with their cause when the time is over, and not before (known fault H112)', async () => {
    const made = world({ deaths: [{ engine: 0, atMs: 2000, downMs: Number.POSITIVE_INFINITY }] })
    await expect(made.run()).rejects.toMatchObject({
      code: 'ENGINE_FAILED',
      message: expect.stringMatching(/No engine came back within 60 s.*http:\/\/0.test: .*does not answer/),
      path: 'orchestrator.student.client.recovery_timeout_seconds',
    })
    expect(made.clock.nowMs()).toBeGreaterThan(60_000)
    expect(made.clock.nowMs()).toBeLessThan(70_000)
  })

  it('say so while the run waits, and an outage is no reward (known fault J127)', async () => {
    const made = world({ deaths: [{ engine: 0, atMs: 2000, downMs: 30_000 }] })
    await made.run()
    check(made, { steps: 8, bound: 8 })
    const steps = made.parts.events.flatMap((event) => (event.kind === 'step' ? [event] : []))
    expect(steps.map(({ values }) => values['error/all/mean'])).toEqual(Array(8).fill(0))
    expect(made.trainer.batches.filter(({ atMs }) => atMs > 7000 && atMs < 32_000)).toEqual([])
    const states = made.parts.events.flatMap((event) => (event.kind === 'status' ? [event.state] : []))
    expect(states).toContain('waiting for an engine to come back')
    expect(made.parts.events.find((event) => event.kind === 'status' && event.values['watcher/engines_ready'] === 0)).toBeDefined()
  })

  it('are not waited for when the last batch is shipped (known fault B17)', async () => {
    const made = world({ deaths: [] })
    const { send } = made.trainer.sender
    Object.assign(made.trainer.sender, {
      send: async (step: number, ...more: [never, never]) => {
        if (step === 7) made.engines.kill('http://0.test')
        await send(step, ...more)
      },
    })
    await made.run()
    check(made, { steps: 8, bound: 8 })
    expect(made.clock.nowMs()).toBeLessThan(20_000)
  })

  it('end it at once with the update that finds none, where nobody brings them back', async () => {
    const made = world({ deaths: [{ engine: 0, atMs: 2000, downMs: Number.POSITIVE_INFINITY }], settings: { recoveryS: 0 } })
    await expect(made.run()).rejects.toMatchObject({ code: 'ENGINE_FAILED', message: expect.stringContaining('No engine is left') })
    expect(made.clock.nowMs()).toBeLessThan(4000)
  })
})

// In the middle of updates, of their own return, all at once: the run ends, nothing is trained twice or too late, and no engine stays paused.
it('whoever dies whenever: all steps, each sample once, the bound on lag, no stale keys', { timeout: 120_000 }, async () => {
  const death = fc.record({ engine: fc.nat(2), atMs: fc.integer({ min: 0, max: 12_000 }), downMs: fc.integer({ min: 1, max: 6000 }) })
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        engines: fc.integer({ min: 1, max: 3 }),
        deaths: fc.array(death, { minLength: 1, maxLength: 6 }),
        level: fc.integer({ min: 0, max: 2 }),
        bound: fc.constantFrom(0, 1, 2, 8),
        stepMs: fc.integer({ min: 1, max: 800 }),
        callMs: fc.integer({ min: 0, max: 300 }),
        betweenSteps: fc.boolean(),
      }),
      async ({ engines, deaths, level, bound, stepMs, callMs, betweenSteps }) => {
        let calls = 0
        const made = world({
          ...{ engines, deaths, stepMs },
          settings: { maxAsyncLevel: level, maxOffPolicySteps: bound },
          of: { betweenSteps, callMs: () => callMs * fraction(11, calls++) },
        })
        await made.run()
        check(made, { steps: 8, bound: level === 0 ? 0 : bound })
      },
    ),
    { numRuns: 20 },
  )
})
