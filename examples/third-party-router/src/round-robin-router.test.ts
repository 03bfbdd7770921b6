import { describePlugin, describeRouter, type FakeFleet, fakeFleet, fakeRequest } from '@trilithon/testing'
import { describe, expect, it } from 'vitest'
import plugin, { RoundRobinRouter } from './index.ts'

describePlugin(plugin, { packageRoot: new URL('..', import.meta.url) })
describeRouter('round-robin router', () => new RoundRobinRouter(256), { capabilities: plugin.capabilities })

/** The leased workers of `count` requests in a row; `wait` for a request that has to wait. */
function route(router: RoundRobinRouter, fleet: FakeFleet, count: number): string[] {
  return Array.from({ length: count }, () => {
    const answer = router.route(fakeRequest(), fleet)
    return answer.status === 'leased' ? answer.lease.worker : answer.status
  })
}

describe('what the contract leaves to us', () => {
  it('gives every worker its turn, in the order of their ids', () => {
    const fleet = fakeFleet(['b', 'a', 'c'])
    expect(route(new RoundRobinRouter(256), fleet, 5)).toEqual(['a', 'b', 'c', 'a', 'b'])
  })

  it('goes on after a worker that has left', () => {
    const fleet = fakeFleet(['a', 'b', 'c'])
    const router = new RoundRobinRouter(256)
    expect(route(router, fleet, 2)).toEqual(['a', 'b'])
    fleet.remove('b')
    expect(route(router, fleet, 2)).toEqual(['c', 'a'])
  })

  it('passes over a worker that is full, and waits where all are', () => {
    const fleet = fakeFleet(['a', 'b'])
    expect(route(new RoundRobinRouter(2), fleet, 5)).toEqual(['a', 'b', 'a', 'b', 'wait'])
  })
})
