import assert from 'node:assert/strict'
import { type RouteAnswer, silentLogger, TrilithonError } from '@trilithon/core'
import { describeRouter, fakeFleet, fakeRequest } from '@trilithon/testing'
import { describe, it } from 'vitest'
import { run } from '../test/create-alone.ts'
import { StickyRouter, stickyRouter } from './sticky-router.ts'

describeRouter('sticky router', () => new StickyRouter(1000), { capabilities: stickyRouter.capabilities })

const leased = (answer: RouteAnswer) => {
  assert.ok(answer.status === 'leased')
  return answer.lease
}

describe('sticky router', () => {
  it('forgets the session that was routed longest ago when it knows too many', () => {
    const router = new StickyRouter(2)
    const fleet = fakeFleet(['a', 'b'])
    const worker = (sessionId: string) => leased(router.route(fakeRequest({ sessionId }), fleet)).worker
    assert.deepEqual(['one', 'two', 'one', 'three'].map(worker), ['a', 'b', 'a', 'b'])
    assert.equal(router.stats(fleet).sessions, 2)
    fleet.set('a', { reportedRequests: 9 })
    assert.equal(worker('one'), 'a', 'used after "two", so remembered')
    assert.equal(worker('two'), 'b', 'forgotten, so placed like a new one')
    assert.equal(worker('three'), 'b', 'forgotten by now')
    assert.equal(router.stats(fleet).sessions, 2)
  })

  it('says in one sentence why nobody can serve', () => {
    const router = new StickyRouter(10)
    const fleet = fakeFleet()
    const reason = (given = {}) => {
      const answer = router.route(fakeRequest({ needs: ['x'], minPolicyVersion: 3, exclude: ['e'], ...given }), fleet)
      return answer.status === 'wait' ? answer.reason : undefined
    }
    assert.equal(reason(), 'The fleet has no workers.')
    fleet.set('a', { state: 'paused' })
    fleet.set('b', { state: 'draining' })
    fleet.set('c', { policyVersion: 2 })
    fleet.set('d', { policyVersion: 3 })
    fleet.set('e', { policyVersion: 3, capabilities: new Set(['x']) })
    fleet.set('f', { policyVersion: 3, capabilities: new Set(['x']), role: 'decode' })
    assert.equal(
      reason(),
      'None of 6 workers can serve the request: 2 not ready, 1 of an older policy version, 1 without a needed capability, 1 excluded, 1 decode without a partner.',
    )
  })

  it('refuses a lease that could not last', () => {
    const router = new StickyRouter(10)
    for (const leaseMs of [0, -1, Number.NaN])
      assert.throws(
        () => router.route(fakeRequest({ leaseMs }), fakeFleet(['a'])),
        (error) => TrilithonError.is(error, 'INVARIANT_BROKEN'),
      )
  })

  it('keeps nothing of leases that ended and sessions that were ended', () => {
    const router = new StickyRouter(1_000_000)
    const fleet = fakeFleet(['a', 'b', 'c'])
    for (let index = 0; index < 5000; index++) {
      const sessionId = String(index)
      leased(router.route(fakeRequest({ sessionId, leaseMs: 1e12 }), fleet)).end({ ok: true })
      router.endSession(sessionId)
    }
    assert.deepEqual(router.stats(fleet), { leases: 0, sessions: 0, leasesByWorker: {} })
  })

  // known-faults 119: routing by a hash of the session drives one engine into eviction while others idle.
  it('keeps 64 sessions, one of them hot, balanced over 4 workers and always at home', () => {
    const router = new StickyRouter(1000)
    const fleet = fakeFleet(['a', 'b', 'c', 'd'])
    const turns = Array.from({ length: 64 }, (_, session) => ({ sessionId: String(session), turns: session === 0 ? 400 : 10 }))
    const home = new Map<string, string>()
    let moved = 0
    for (let turn = 0; turn < 400; turn++)
      for (const { sessionId } of turns.filter((each) => each.turns > turn)) {
        const { worker } = leased(router.route(fakeRequest({ sessionId, leaseMs: 10 }), fleet))
        if ((home.get(sessionId) ?? worker) !== worker) moved++
        home.set(sessionId, worker)
        fleet.clock.advance(0.1)
      }
    assert.equal(moved, 0)
    const sessionsByWorker = ['a', 'b', 'c', 'd'].map((id) => [...home.values()].filter((worker) => worker === id).length)
    assert.ok(Math.max(...sessionsByWorker) / 16 < 1.5, String(sessionsByWorker))
  })

  // known-faults 121: a shared prompt draws all requests to one worker, and routers with stale reports pick the same one.
  it('spreads 256 requests of one prompt over 8 workers, also with 4 routers whose reports come late', () => {
    for (const copies of [1, 4]) {
      const fleet = fakeFleet(Array.from({ length: 8 }, (_, index) => `worker-${index}`))
      const routers = Array.from({ length: copies }, () => new StickyRouter(1000))
      const counts = new Map<string, number>()
      for (let index = 0; index < 256; index++) {
        const router = routers[index % copies]
        const { worker } = leased(router?.route(fakeRequest({ sessionId: String(index), groupId: 'one' }), fleet) ?? assert.fail())
        counts.set(worker, (counts.get(worker) ?? 0) + 1)
        // A report every 64 requests stands for one second.
        if (index % 64 === 63) for (const [id, count] of counts) fleet.set(id, { reportedRequests: count })
      }
      assert.ok(Math.max(...counts.values()) <= 2 * (256 / 8), JSON.stringify([...counts]))
      assert.equal(counts.size, 8)
    }
  })

  it('is created with the documented default where the configuration gives no table', async () => {
    const signal = new AbortController().signal
    const router = await stickyRouter.create({ config: { 'orchestrator.router': undefined }, run, needs: {}, log: silentLogger, signal })
    assert.deepEqual(router.stats(fakeFleet()), { leases: 0, sessions: 0, leasesByWorker: {} })
  })
})
