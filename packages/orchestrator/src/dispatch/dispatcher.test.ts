import { stickyRouter } from '@trilithon/builtin'
import type { RouteRequest, Router } from '@trilithon/core'
import { describe, expect, it } from 'vitest'
import { createWorld, numberOf, stepEvents, type WorldOptions } from '../fakes/create-world.ts'
import { fraction } from '../source/random.ts'

const builtIn = () => stickyRouter.create({ config: {} } as never) as Router
const world = (options: Omit<WorldOptions, 'router'> = {}) => createWorld({ router: builtIn(), ...options })

describe('the salt', () => {
  it('that the router is told is the one that the episode has', async () => {
    const told: RouteRequest[] = []
    const made = world({
      settings: { maxSteps: 6, maxInflight: 6 },
      pool: { episode: (request) => ({ ms: 30 + 90 * fraction(6, numberOf(request)) }) },
      change: ({ router }) => ({
        router: {
          ...router,
          route: (request, fleet) => {
            told.push(request)
            return router.route(request, fleet)
          },
          endSession: (id) => router.endSession(id),
          stats: (fleet) => router.stats(fleet),
        },
      }),
    })
    await made.run()
    const saltOf = new Map(told.map(({ sessionId, salt }) => [sessionId, salt]))
    expect(made.pool.requests.map(({ session, salt }) => [session, salt])).toEqual(
      made.pool.requests.map(({ session }) => [session, saltOf.get(session)]),
    )
    expect(new Set(saltOf.values()).size).toBeGreaterThan(3)
  })
})

describe('while weights change', () => {
  const engineUrls = ['http://a.test', 'http://b.test']

  it.each([true, false])(
    'nothing starts, so no group has the salt of weights that are gone (engines change by themselves: %s)',
    async (alone) => {
      const made = world({
        ...{ engineUrls, stepMs: 60 },
        settings: { maxSteps: 8, maxInflight: 12 },
        pool: { episode: (request) => ({ ms: 20 + 50 * fraction(4, numberOf(request)), turns: [1] }) },
      })
      const { engines, clock, pool } = made
      const serves = new Map(engineUrls.map((url) => [url, 0]))
      engines.betweenSteps = () => alone
      const changes: [number, number][] = []
      const change = async (engine: string, version: number) => {
        const began = clock.nowMs()
        // The second engine is slower: for a while the two serve two versions.
        await clock.sleep(engine === 'http://a.test' ? 5 : 45)
        serves.set(engine, version)
        engines.served = version
        changes.push([began, clock.nowMs()])
        return { pausedSeconds: 0.001, stepSeconds: 0.02 }
      }
      engines.exchange = change
      engines.flip = async (engine, version) => void (await change(engine, version))
      const started: { readonly ms: number; readonly isFirst: boolean; readonly salt: number; readonly served: number }[] = []
      const run = pool.run.bind(pool)
      const groups = new Set<string>()
      pool.run = (request, more) => {
        const { groupId, baseUrl, salt } = request
        started.push({ ms: clock.nowMs(), isFirst: !groups.has(groupId), salt: Number(salt), served: serves.get(baseUrl) ?? -1 })
        groups.add(groupId)
        return run(request, more)
      }
      await made.run()
      const first = started.filter(({ isFirst }) => isFirst)
      expect(first.map(({ salt }) => salt)).toEqual(first.map(({ served }) => served))
      expect(changes.length).toBeGreaterThan(8)
      for (const [began, ended] of changes) expect(started.filter(({ ms }) => ms > began && ms < ended)).toEqual([])
    },
  )

  it.each([true, false])(
    'many episodes may end; all places are taken again in the moment in which it is over (engines change by themselves: %s)',
    async (alone) => {
      // Episodes of the first versions are too old for the third, and are cancelled before it; the others last for ever.
      const made = world({
        settings: { maxSteps: 6, maxInflight: 32, maxOffPolicySteps: 1, batchSize: 4 },
        stepMs: 1000,
        pool: { episode: ({ taskIndex }) => (taskIndex < 7 ? { ms: 1e7, turns: [1000] } : { ms: 300 }) },
      })
      const { engines, clock, pool, orchestrator } = made
      engines.betweenSteps = () => alone
      engines.callMs = 20
      const begun: number[] = []
      const run = pool.run.bind(pool)
      pool.run = (request, more) => {
        begun.push(clock.nowMs())
        return run(request, more)
      }
      const places: { readonly during: number; readonly after: number; readonly lateMs: number }[] = []
      const { finish } = engines
      engines.finish = async (engine, version) => {
        // Called right when nothing is held any more.
        const endMs = clock.nowMs()
        const during = pool.inFlight
        const before = begun.length
        await finish.call(engines, engine, version)
        const news = begun.slice(before)
        places.push({
          during,
          after: orchestrator.state.dispatcher.inflightTrain,
          lateMs: Math.max(0, ...news) - (news.length > 0 ? endMs : 0),
        })
      }
      await made.run()
      expect(places.filter(({ during }) => during < 16).length).toBeGreaterThan(0)
      for (const { after, lateMs } of places) expect([after, lateMs]).toEqual([32, 0])
    },
  )
})

it('an episode whose engine does not answer runs again elsewhere, in its place and not as an error', async () => {
  const [good, bad] = ['http://a.test', 'http://b.test']
  const made = world({
    engineUrls: [good, bad],
    settings: { maxSteps: 6, maxInflight: 8 },
    pool: {
      episode: ({ baseUrl }) => (baseUrl === bad ? { ms: 10, error: { type: 'EngineUnavailable', message: '503' } } : { ms: 100 }),
    },
  })
  await made.run()
  const places = new Map<string, string[]>()
  for (const { rolloutId, baseUrl } of made.pool.requests) places.set(rolloutId, [...(places.get(rolloutId) ?? []), baseUrl])
  const shipped = made.trainer.batches.flatMap(({ samples }) => samples.map(({ id }) => id.split('.').slice(0, 2).join('.')))
  expect(shipped).toHaveLength(48)
  // At most once where it failed, and then where it works.
  for (const id of shipped) expect([[good], [bad, good]]).toContainEqual(places.get(id))
  expect([...places.values()].filter(([first]) => first === bad).length).toBeGreaterThan(8)
  expect(stepEvents(made).map(({ values }) => values['error/all/mean'])).toEqual([0, 0, 0, 0, 0, 0])
  expect(made.pool.mostInFlight).toBe(8)
})
