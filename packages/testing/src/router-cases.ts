import assert from 'node:assert/strict'
import type { FleetWorker, RouteLease, RouteRequest } from '@trilithon/core'
import { hasCode } from './has-code.ts'
import type { RouterContext } from './router-context.ts'
import { checkBooks, checkPlacement, checkRepeatability } from './router-property.ts'
import { caseTable } from './suite.ts'

const done = { ok: true } as const

/** Two decode and two prefill workers; the first of each pair of ids is the one a tie goes to. */
function setPairs({ fleet }: RouterContext): void {
  for (const id of ['decode-0', 'decode-1']) fleet.set(id, { role: 'decode' })
  for (const id of ['prefill-0', 'prefill-1']) fleet.set(id, { role: 'prefill' })
}

/** What keeps worker `worker` from a request, one way each: a change of the worker or an addition to the request. */
const obstacles = {
  excluded: { change: {}, request: { exclude: ['worker'] } },
  incapable: { change: { capabilities: new Set(['logprobs']) }, request: { needs: ['logprobs', 'routed_experts'] } },
  old: { change: { policyVersion: 6 }, request: { minPolicyVersion: 7 } },
} satisfies Record<string, { change: Partial<FleetWorker>; request: Partial<RouteRequest> }>

/** Sessions of one case, each with one live lease. */
async function leaseMany(context: RouterContext, count: number, prefix = 'session'): Promise<RouteLease[]> {
  const leases: RouteLease[] = []
  for (let index = 0; index < count; index++) leases.push(await context.lease({ sessionId: `${prefix}-${index}` }))
  return leases
}

/** The contract of `Router` in core, one or more cases per sentence. */
export const routerCases = caseTable<RouterContext>()([
  {
    name: 'R1 only a ready worker is leased',
    async run({ fleet, lease, wait }) {
      for (const state of ['starting', 'paused', 'draining', 'failed'] as const) {
        fleet.set('worker', { state })
        await wait()
      }
      fleet.set('worker', { state: 'ready' })
      assert.equal((await lease()).worker, 'worker')
    },
  },
  {
    name: 'R1 neither half of a pair is leased alone',
    async run({ fleet, wait }) {
      fleet.set('prefill', { role: 'prefill' })
      await wait()
      fleet.set('decode', { role: 'decode', state: 'paused' })
      await wait()
      fleet.set('decode', { state: 'ready' })
      fleet.remove('prefill')
      await wait()
    },
  },
  {
    name: 'R1 a worker of another role or state is passed over for one that serves',
    async run({ fleet, lease }) {
      fleet.set('a', { role: 'prefill' })
      fleet.set('b', { state: 'draining' })
      fleet.set('c')
      const { worker, prefillWorker } = await lease()
      assert.deepEqual({ worker, prefillWorker }, { worker: 'c', prefillWorker: undefined })
    },
  },
  {
    name: 'R2 an empty fleet is answered with wait',
    run: ({ wait }) => wait(),
  },
  {
    name: 'R2 a fleet of which nobody can serve is answered with wait',
    async run({ fleet, wait, stats }) {
      fleet.set('worker', obstacles.old.change)
      await wait({ sessionId: 'a', ...obstacles.old.request })
      await wait({ sessionId: 'b', ...obstacles.incapable.request })
      await wait({ sessionId: 'c', ...obstacles.excluded.request })
      assert.equal(stats().leases, 0, 'an answer of wait leases nothing')
    },
  },
  {
    name: 'R2 a worker that becomes able is leased',
    async run({ fleet, lease, wait }) {
      fleet.set('worker', { state: 'paused' })
      await wait()
      fleet.set('worker', { state: 'ready' })
      assert.equal((await lease()).worker, 'worker')
    },
  },
  {
    name: 'R3 an excluded worker is never leased',
    async run({ fleet, lease }) {
      const ids = ['a', 'b', 'c']
      for (const id of ids) fleet.set(id)
      for (const only of ids) {
        const exclude = ids.filter((id) => id !== only)
        assert.equal((await lease({ exclude })).worker, only)
        assert.equal((await lease({ exclude: exclude.reverse() })).worker, only)
      }
    },
  },
  {
    name: 'R4 a leased worker has every needed capability',
    async run({ fleet, lease }) {
      fleet.set('a', { capabilities: new Set(['logprobs']) })
      fleet.set('b', { capabilities: new Set(['routed_experts']) })
      fleet.set('c', { capabilities: new Set(['routed_experts', 'logprobs']) })
      for (let turn = 0; turn < 4; turn++) assert.equal((await lease({ needs: ['logprobs', 'routed_experts'] })).worker, 'c')
    },
  },
  {
    name: 'R5 a leased worker serves the demanded policy version or a newer one',
    async run({ fleet, lease }) {
      fleet.set('a', { policyVersion: 6 })
      fleet.set('b', { policyVersion: 7 })
      fleet.set('c', { policyVersion: 8 })
      assert.equal((await lease({ sessionId: 'exact', minPolicyVersion: 7, exclude: ['c'] })).worker, 'b')
      assert.equal((await lease({ sessionId: 'newer', minPolicyVersion: 7, exclude: ['b'] })).worker, 'c')
    },
  },
  {
    name: 'R6 a lease counts until it ends',
    async run(context) {
      context.fleet.set('worker')
      const [first, second] = await leaseMany(context, 2)
      assert.deepEqual([context.stats().leases, context.stats().leasesByWorker], [2, { worker: 2 }])
      first?.end({ ok: false, error: 'aborted' })
      assert.deepEqual([context.stats().leases, context.stats().leasesByWorker], [1, { worker: 1 }])
      second?.end({ ok: true, outputTokens: 3, cachedTokens: 0 })
      assert.deepEqual([context.stats().leases, context.stats().leasesByWorker], [0, {}])
    },
  },
  {
    name: 'R6 ending a lease twice is ending it once',
    async run(context) {
      context.fleet.set('worker')
      const [first] = await leaseMany(context, 2)
      first?.end(done)
      first?.end(done)
      assert.deepEqual([context.stats().leases, context.stats().leasesByWorker], [1, { worker: 1 }])
    },
  },
  {
    name: 'R6 random calls keep the books of a plain model',
    run: (context) => checkBooks(context),
  },
  {
    name: 'R7 a lease that was not ended expires',
    async run({ fleet, lease, stats }) {
      fleet.set('worker')
      fleet.clock.advance(5)
      await lease({ leaseMs: 100 })
      fleet.clock.advance(99)
      assert.equal(stats().leases, 1, 'one millisecond before its deadline it counts')
      fleet.clock.advance(1)
      assert.deepEqual([stats().leases, stats().leasesByWorker], [0, {}])
    },
  },
  {
    name: 'R7 leases expire by their own deadlines, in whatever order they were given',
    async run({ fleet, lease, stats }) {
      fleet.set('worker')
      const lengths = [700, 100, 500, 300, 600, 200, 400]
      for (const leaseMs of lengths) await lease({ leaseMs })
      for (let left = lengths.length - 1; left >= 0; left--) {
        fleet.clock.advance(100)
        assert.equal(stats().leases, left)
      }
    },
  },
  {
    name: 'R7 an expired lease may be ended without effect',
    async run({ fleet, lease, stats }) {
      fleet.set('worker')
      const expired = await lease({ leaseMs: 10 })
      await lease({ leaseMs: 1000 })
      fleet.clock.advance(10)
      assert.equal(stats().leases, 1)
      expired.end(done)
      assert.deepEqual([stats().leases, stats().leasesByWorker], [1, { worker: 1 }])
    },
  },
  {
    name: 'R8 a worker that disappears loses its leases',
    async run({ fleet, lease, stats }) {
      fleet.set('stays')
      await lease({ sessionId: 'a' })
      fleet.set('goes')
      await lease({ sessionId: 'b', exclude: ['stays'] })
      await lease({ sessionId: 'c', exclude: ['stays'] })
      assert.deepEqual(stats().leasesByWorker, { stays: 1, goes: 2 })
      fleet.remove('goes')
      assert.deepEqual([stats().leases, stats().leasesByWorker], [1, { stays: 1 }])
    },
  },
  {
    name: 'R8 ending a lease of a worker that disappeared has no effect, though the worker came back',
    async run({ fleet, lease, stats }) {
      fleet.set('worker')
      const lost = await lease({ sessionId: 'a' })
      fleet.remove('worker')
      assert.equal(stats().leases, 0)
      fleet.set('worker')
      assert.equal(stats().leases, 0, 'a worker that comes back comes without leases')
      await lease({ sessionId: 'b' })
      lost.end(done)
      assert.deepEqual([stats().leases, stats().leasesByWorker], [1, { worker: 1 }])
    },
  },
  {
    name: 'R9 random calls on two routers give the same answers',
    run: (context) => checkRepeatability(context),
  },
  {
    name: 'R10 ending a session does not end its leases',
    async run({ router, fleet, lease, stats }) {
      fleet.set('worker')
      const live = await lease({ sessionId: 'a' })
      router.endSession('a')
      assert.deepEqual([stats().leases, stats().leasesByWorker], [1, { worker: 1 }])
      live.end(done)
      assert.equal(stats().leases, 0)
    },
  },
  {
    name: 'R10 a session that was ended is not remembered, and an unknown one is no error',
    async run({ router, fleet, lease, stats }) {
      fleet.set('worker')
      router.endSession('never seen')
      for (const sessionId of ['a', 'b']) (await lease({ sessionId })).end(done)
      for (const sessionId of ['a', 'b', 'a']) router.endSession(sessionId)
      assert.equal(stats().sessions, 0)
    },
  },
  {
    name: 'R10 a session that was ended is placed like a new one',
    claimed: ['sticky', 'least_loaded'],
    async run({ router, fleet, lease }) {
      fleet.set('a')
      fleet.set('b')
      assert.equal((await lease()).worker, 'a')
      router.endSession('session')
      assert.equal((await lease()).worker, 'b')
    },
  },
  {
    name: 'R11 a disposed router leases nothing',
    async run({ router, fleet, route }) {
      fleet.set('worker')
      await router.dispose()
      await assert.rejects(async () => route(), hasCode('PLUGIN_DISPOSED'))
    },
  },
  {
    name: 'R11 what outlives a router can be ended without effect',
    async run({ router, fleet, lease, stats }) {
      fleet.set('worker')
      const live = await lease()
      await router.dispose()
      assert.deepEqual(stats(), { leases: 0, sessions: 0, leasesByWorker: {} })
      live.end(done)
      router.endSession('session')
      await router.dispose()
      assert.deepEqual(stats(), { leases: 0, sessions: 0, leasesByWorker: {} })
    },
  },
  {
    name: 'R12 a session stays on its worker whatever the load',
    claimed: ['sticky'],
    async run({ fleet, lease }) {
      for (const id of ['a', 'b', 'c']) fleet.set(id)
      const { worker } = await lease()
      fleet.set(worker, { reportedRequests: 1000 })
      for (let turn = 0; turn < 8; turn++) assert.equal((await lease()).worker, worker)
    },
  },
  {
    name: 'R12 a session whose worker may not serve it moves, and stays where it moved',
    claimed: ['sticky'],
    async run({ fleet, lease }) {
      for (const id of ['a', 'b']) fleet.set(id)
      const { worker: first } = await lease()
      const { worker: second } = await lease({ exclude: [first] })
      assert.notEqual(second, first)
      fleet.set(second, { reportedRequests: 1000 })
      assert.equal((await lease()).worker, second)
    },
  },
  {
    name: 'R12 a session waits for a fleet that pauses and is back on its worker afterwards',
    claimed: ['sticky'],
    async run({ fleet, lease, wait }) {
      for (const id of ['a', 'b']) fleet.set(id)
      const { worker } = await lease()
      for (const id of ['a', 'b']) fleet.set(id, { state: 'paused' })
      await wait()
      for (const id of ['a', 'b']) fleet.set(id, { state: 'ready', policyVersion: 1, reportedRequests: id === worker ? 9 : 0 })
      assert.equal((await lease({ minPolicyVersion: 1 })).worker, worker)
    },
  },
  {
    name: 'R13 new sessions spread evenly over idle workers',
    claimed: ['least_loaded'],
    async run(context) {
      for (const id of ['c', 'a', 'b']) context.fleet.set(id)
      await leaseMany(context, 7)
      assert.deepEqual({ ...context.stats().leasesByWorker }, { a: 3, b: 2, c: 2 }, 'ties go to the lower id')
    },
  },
  {
    name: 'R13 an ended lease is no load any more',
    claimed: ['least_loaded'],
    async run(context) {
      for (const id of ['a', 'b']) context.fleet.set(id)
      const [onA, onB] = await leaseMany(context, 2)
      assert.deepEqual([onA?.worker, onB?.worker], ['a', 'b'])
      onB?.end(done)
      assert.equal((await context.lease({ sessionId: 'new' })).worker, 'b')
    },
  },
  {
    name: 'R13 the load is the reported requests or the live leases, whichever is more',
    claimed: ['least_loaded'],
    async run(context) {
      context.fleet.set('a', { reportedRequests: 3 })
      context.fleet.set('b', { reportedRequests: 2 })
      const [first, second, third] = await leaseMany(context, 3)
      assert.deepEqual([first?.worker, second?.worker], ['b', 'b'], 'b has 2 reported requests, which may be the 2 leases')
      assert.equal(third?.worker, 'b', 'two leases and two reported requests are a load of 2')
      assert.equal((await context.lease({ sessionId: 'new' })).worker, 'a', 'three leases are a load of 3: a tie, to the lower id')
    },
  },
  {
    name: 'R13 a session that has to move goes to the least loaded worker',
    claimed: ['least_loaded', 'sticky'],
    async run({ fleet, lease }) {
      fleet.set('a')
      await lease()
      fleet.set('b', { reportedRequests: 2 })
      fleet.set('c', { reportedRequests: 1 })
      assert.equal((await lease({ exclude: ['a'] })).worker, 'c')
    },
  },
  {
    name: 'R13 random calls place sessions as a plain model does',
    claimed: ['least_loaded', 'sticky'],
    run: (context) => checkPlacement(context, 'both'),
  },
  {
    name: 'R14 a fleet of prefill and decode workers is served by pairs',
    claimed: ['prefill_decode'],
    async run(context) {
      setPairs(context)
      const { worker, prefillWorker } = await context.lease()
      assert.match(worker, /^decode-/)
      assert.match(String(prefillWorker), /^prefill-/)
    },
  },
  {
    name: 'R14 both of a pair are able',
    claimed: ['prefill_decode'],
    async run({ fleet, lease, wait }) {
      for (const role of ['prefill', 'decode'] as const) {
        const partner = role === 'prefill' ? 'decode' : 'prefill'
        for (const { change, request } of Object.values(obstacles)) {
          fleet.set('worker', { role, state: 'ready', policyVersion: 7, capabilities: new Set(), ...change })
          fleet.set('partner', { role: partner, policyVersion: 7, capabilities: new Set(['logprobs', 'routed_experts']) })
          await wait(request)
        }
        fleet.set('worker', { state: 'paused' })
        await wait()
        fleet.set('worker', { state: 'ready' })
        await lease()
      }
    },
  },
  {
    name: 'R14 the lease of a pair counts once, under both',
    claimed: ['prefill_decode'],
    async run({ fleet, lease, stats }) {
      fleet.set('decode', { role: 'decode' })
      fleet.set('prefill', { role: 'prefill' })
      const live = await lease()
      assert.deepEqual([stats().leases, { ...stats().leasesByWorker }], [1, { decode: 1, prefill: 1 }])
      live.end(done)
      assert.deepEqual([stats().leases, stats().leasesByWorker], [0, {}])
    },
  },
  {
    name: 'R8 the lease of a pair goes with its decode worker and survives its prefill worker',
    claimed: ['prefill_decode'],
    async run({ fleet, lease, stats }) {
      fleet.set('decode', { role: 'decode' })
      fleet.set('prefill', { role: 'prefill' })
      await lease()
      fleet.remove('prefill')
      assert.deepEqual([stats().leases, stats().leasesByWorker], [1, { decode: 1 }])
      fleet.set('prefill', { role: 'prefill' })
      assert.deepEqual(stats().leasesByWorker, { decode: 1 }, 'a prefill worker that comes back comes without leases')
      await lease()
      fleet.remove('decode')
      assert.deepEqual([stats().leases, stats().leasesByWorker], [0, {}])
    },
  },
  {
    name: 'R12 each half of a pair stays by itself',
    claimed: ['prefill_decode', 'sticky'],
    async run(context) {
      setPairs(context)
      const first = await context.lease()
      for (const id of [first.worker, String(first.prefillWorker)]) context.fleet.set(id, { reportedRequests: 1000 })
      const second = await context.lease()
      assert.deepEqual([second.worker, second.prefillWorker], [first.worker, first.prefillWorker])
      const third = await context.lease({ exclude: [String(first.prefillWorker)] })
      assert.equal(third.worker, first.worker)
      assert.notEqual(third.prefillWorker, first.prefillWorker)
    },
  },
  {
    name: 'R13 pairs spread evenly, and serve beside workers that serve alone',
    claimed: ['prefill_decode', 'least_loaded'],
    async run(context) {
      setPairs(context)
      context.fleet.set('alone')
      await leaseMany(context, 6)
      const expected = { alone: 2, 'decode-0': 2, 'decode-1': 2, 'prefill-0': 2, 'prefill-1': 2 }
      assert.deepEqual({ ...context.stats().leasesByWorker }, expected)
    },
  },
  {
    name: 'R14 random calls place pairs as a plain model does',
    claimed: ['prefill_decode', 'least_loaded', 'sticky'],
    run: (context) => checkPlacement(context, 'both', 'decode', 'prefill'),
  },
  {
    name: 'R14 without the capability a fleet of pairs is answered with wait',
    unclaimed: 'prefill_decode',
    async run(context) {
      setPairs(context)
      await context.wait()
    },
  },
])

/** Names that a skip may use. */
export type RouterCaseName = (typeof routerCases)[number]['name']
