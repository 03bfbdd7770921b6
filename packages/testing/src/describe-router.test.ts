import assert from 'node:assert/strict'
import { LimitedRouter } from './__fixtures__/limited-router.ts'
import { describeRouter } from './describe-router.ts'
import type { RouterContext } from './router-context.ts'
import type { CaseSkip } from './suite.ts'

const leasesStay: CaseSkip<RouterContext> = {
  reason: 'this router keeps a lease until it is ended',
  async instead({ fleet, lease, stats }) {
    fleet.set('worker')
    const live = await lease({ leaseMs: 10 })
    fleet.clock.advance(1000)
    assert.equal(stats().leases, 1)
    live.end({ ok: true })
    assert.equal(stats().leases, 0)
  },
}

describeRouter('a router that answers late, claims nothing and lets no lease expire', () => new LimitedRouter(), {
  skip: {
    'R7 a lease that was not ended expires': leasesStay,
    'R7 leases expire by their own deadlines, in whatever order they were given': leasesStay,
    'R7 an expired lease may be ended without effect': leasesStay,
    'R6 random calls keep the books of a plain model': leasesStay,
  },
})
