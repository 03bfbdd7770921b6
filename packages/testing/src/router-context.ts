import assert from 'node:assert/strict'
import type { RouteAnswer, RouteLease, RouteRequest, Router, RouterStats } from '@trilithon/core'
import { type FakeFleet, fakeFleet, fakeRequest } from './fake-fleet.ts'
import type { SuiteContext } from './suite.ts'

/** Makes a router that knows no session and holds no lease. */
export type MakeRouter = () => Router | Promise<Router>

/** What a case of the router suite runs on: a new router and an empty fleet. */
export interface RouterContext extends SuiteContext {
  readonly router: Router
  readonly fleet: FakeFleet
  /** Another router of the same make, disposed with the first. */
  another(): Promise<Router>
  route(given?: Partial<RouteRequest>): Promise<RouteAnswer>
  /** Routes, and fails the case where nothing is leased. */
  lease(given?: Partial<RouteRequest>): Promise<RouteLease>
  /** Routes, and fails the case unless the answer is `wait` with a sentence. */
  wait(given?: Partial<RouteRequest>): Promise<void>
  stats(): RouterStats
}

export async function openRouterContext(make: MakeRouter): Promise<RouterContext> {
  const made: Router[] = []
  const another = async () => {
    const router = await make()
    made.push(router)
    return router
  }
  const router = await another()
  const fleet = fakeFleet()
  const route = async (given?: Partial<RouteRequest>) => router.route(fakeRequest(given), fleet)
  return {
    router,
    fleet,
    another,
    route,
    async lease(given) {
      const answer = await route(given)
      assert.ok(answer.status === 'leased', `a worker can serve the request, and the answer is: ${JSON.stringify(answer)}`)
      return answer.lease
    },
    async wait(given) {
      const answer = await route(given)
      assert.ok(answer.status === 'wait', `no worker may serve the request, and the answer is: ${JSON.stringify(answer)}`)
      assert.match(answer.reason, /\S/, 'the reason of `wait` is a sentence')
    },
    stats: () => router.stats(fleet),
    async close() {
      for (const each of made) await each.dispose()
    },
  }
}
