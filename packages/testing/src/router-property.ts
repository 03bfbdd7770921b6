import assert from 'node:assert/strict'
import type { FleetWorker, RouteLease, RouteRequest, Router, RouterStats, WorkerId } from '@trilithon/core'
import fc from 'fast-check'
import { assertProperty } from './assert-property.ts'
import { type FakeFleet, fakeFleet, fakeRequest } from './fake-fleet.ts'
import type { RouterContext } from './router-context.ts'

/*
 * Random calls on a router and on a model of its contract. The model keeps lists and searches them: slow, and plain to read beside the sentences.
 */

type Operation =
  | { readonly kind: 'route'; readonly request: Partial<RouteRequest> }
  | { readonly kind: 'end'; readonly which: number }
  | { readonly kind: 'end-session'; readonly sessionId: string }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'set'; readonly id: WorkerId; readonly change: Partial<FleetWorker> }
  | { readonly kind: 'remove'; readonly id: WorkerId }

interface Scenario {
  readonly roles: readonly FleetWorker['role'][]
  readonly operations: readonly Operation[]
}

const ids = ['a', 'b', 'c', 'd', 'e']
const id = fc.constantFrom(...ids)
const sessionId = fc.constantFrom('one', 'two', 'three', 'four')
const capability = fc.subarray(['routed_experts', 'logprobs'])

const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('route' as const),
      request: fc.record({
        sessionId,
        needs: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, capability),
        minPolicyVersion: fc.constantFrom(0, 0, 1),
        exclude: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.subarray(ids)),
        leaseMs: fc.constantFrom(10, 50, 1000),
      }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('end' as const), which: fc.nat(30) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('end-session' as const), sessionId }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(40) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('set' as const),
      id,
      change: fc.oneof<fc.Arbitrary<Partial<FleetWorker>>[]>(
        fc.record({ state: fc.constantFrom('ready', 'ready', 'paused', 'failed') }),
        fc.record({ policyVersion: fc.nat(2) }),
        fc.record({ reportedRequests: fc.nat(4) }),
        capability.map((names) => ({ capabilities: new Set(names) })),
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), id }) },
)

const scenarioOf = (...roles: readonly FleetWorker['role'][]): fc.Arbitrary<Scenario> =>
  fc.record({
    roles: fc.array(fc.constantFrom(...roles), { minLength: ids.length, maxLength: ids.length }),
    operations: fc.array(operation, { maxLength: 60, size: 'max' }),
  })

const runs = 60

/** R1 to R8 in any order of calls: who may be leased, and what `stats` counts. */
export async function checkBooks(context: RouterContext): Promise<void> {
  await assertProperty(
    scenarioOf('both', 'both', 'decode', 'prefill'),
    async (scenario) => {
      await playOnModel(await context.another(), scenario, (expected, lease, model) => {
        // Serving pairs is a capability, and a busy worker may be waited for: only an idle worker that serves alone must be leased.
        if (lease === undefined) assert.ok(!expected.singles.some((worker) => model.load(worker) === 0), 'R2: an idle worker can serve')
      })
    },
    runs,
  )
}

/** R12 and R13 in any order of calls: every placement is the one that the two sentences leave. */
export async function checkPlacement(context: RouterContext, ...roles: readonly FleetWorker['role'][]): Promise<void> {
  await assertProperty(
    scenarioOf(...roles),
    async (scenario) => {
      await playOnModel(await context.another(), scenario, (expected, lease) => {
        assert.deepEqual([lease?.worker, lease?.prefillWorker], [expected.worker, expected.prefillWorker])
      })
    },
    runs,
  )
}

/** R9 in any order of calls. */
export async function checkRepeatability(context: RouterContext): Promise<void> {
  await assertProperty(
    scenarioOf('both', 'both', 'decode', 'prefill'),
    async (scenario) => {
      assert.deepEqual(await play(await context.another(), scenario), await play(await context.another(), scenario))
    },
    runs,
  )
}

async function playOnModel(
  router: Router,
  scenario: Scenario,
  check: (expected: Expected, lease: RouteLease | undefined, model: RouterModel) => void,
): Promise<void> {
  const model = new RouterModel()
  await play(router, scenario, {
    routed(request, fleet, lease) {
      model.settle(fleet)
      const expected = model.expect(request, fleet)
      if (lease !== undefined) {
        assert.ok(
          expected.able.some(
            (worker) => worker.id === lease.worker && worker.role === (lease.prefillWorker === undefined ? 'both' : 'decode'),
          ),
          `R1 to R5: ${lease.worker} may not serve ${JSON.stringify(request)}`,
        )
        if (lease.prefillWorker !== undefined)
          assert.ok(
            expected.able.some((worker) => worker.id === lease.prefillWorker && worker.role === 'prefill'),
            `R1 to R5: ${lease.prefillWorker} may not prefill for ${JSON.stringify(request)}`,
          )
      }
      check(expected, lease, model)
      if (lease !== undefined) model.leased(request, lease, fleet.nowMs())
    },
    ended: (lease) => model.ended(lease),
    sessionEnded: (sessionId) => model.homes.delete(sessionId),
    settled(fleet, { leases, leasesByWorker }) {
      model.settle(fleet)
      assert.deepEqual({ leases, leasesByWorker: { ...leasesByWorker } }, model.stats())
    },
  })
}

interface Observer {
  routed(request: RouteRequest, fleet: FakeFleet, lease: RouteLease | undefined): void
  ended(lease: RouteLease): void
  sessionEnded(sessionId: string): void
  /** After every operation. */
  settled(fleet: FakeFleet, stats: RouterStats): void
}

/** Plays a scenario; resolves to all that the router answered. */
async function play(router: Router, { roles, operations }: Scenario, observer?: Observer): Promise<readonly unknown[]> {
  const fleet = fakeFleet()
  const roleOf = new Map(ids.map((id, index) => [id, roles[index] ?? 'both']))
  for (const [id, role] of roleOf) fleet.set(id, { role })
  const given: RouteLease[] = []
  const answers: unknown[] = []
  for (const step of operations) {
    switch (step.kind) {
      case 'route': {
        const request = fakeRequest(step.request)
        const answer = await router.route(request, fleet)
        const lease = answer.status === 'leased' ? answer.lease : undefined
        observer?.routed(request, fleet, lease)
        if (lease !== undefined) given.push(lease)
        answers.push(lease === undefined ? answer : { ...lease, end: 'a function' })
        break
      }
      case 'end': {
        const lease = given[step.which % Math.max(1, given.length)]
        lease?.end({ ok: true })
        if (lease !== undefined) observer?.ended(lease)
        break
      }
      case 'end-session':
        router.endSession(step.sessionId)
        observer?.sessionEnded(step.sessionId)
        break
      case 'advance':
        fleet.clock.advance(step.ms)
        break
      case 'set':
        fleet.set(step.id, { role: roleOf.get(step.id) ?? 'both', ...step.change })
        break
      case 'remove':
        fleet.remove(step.id)
        break
    }
    const stats = router.stats(fleet)
    observer?.settled(fleet, stats)
    answers.push(stats)
  }
  return answers
}

interface Home {
  readonly worker: WorkerId
  readonly prefillWorker: WorkerId | undefined
}

interface Expected {
  /** Workers that meet R1 to R5, whatever their role; `singles` serve alone. */
  readonly able: readonly FleetWorker[]
  readonly singles: readonly FleetWorker[]
  /** Where R12 and R13 place the request; undefined for `wait`. */
  readonly worker: WorkerId | undefined
  readonly prefillWorker: WorkerId | undefined
}

class RouterModel {
  /** Worker of each session's last lease. */
  readonly homes = new Map<string, Home>()
  #live: { readonly lease: RouteLease; readonly deadlineMs: number; readonly workers: readonly WorkerId[] }[] = []

  settle(fleet: FakeFleet): void {
    const present = new Set(Array.from(fleet.workers(), (worker) => worker.id))
    this.#live = this.#live
      .filter(({ lease, deadlineMs }) => deadlineMs > fleet.nowMs() && present.has(lease.worker))
      .map((entry) => ({ ...entry, workers: entry.workers.filter((worker) => present.has(worker)) }))
  }

  expect(request: RouteRequest, fleet: FakeFleet): Expected {
    const able = Array.from(fleet.workers()).filter(
      (worker) =>
        worker.state === 'ready' &&
        !request.exclude.includes(worker.id) &&
        worker.policyVersion >= request.minPolicyVersion &&
        request.needs.every((need) => worker.capabilities.has(need)),
    )
    const withRole = (role: FleetWorker['role']) => able.filter((worker) => worker.role === role)
    const [singles, decodes, prefills] = [withRole('both'), withRole('decode'), withRole('prefill')]
    const home = this.homes.get(request.sessionId)
    const worker = this.#pick(prefills.length > 0 ? [...singles, ...decodes] : singles, home?.worker)
    const prefill = worker?.role === 'decode' ? this.#pick(prefills, home?.prefillWorker) : undefined
    return { able, singles, worker: worker?.id, prefillWorker: prefill?.id }
  }

  leased(request: RouteRequest, lease: RouteLease, nowMs: number): void {
    const { worker, prefillWorker } = lease
    this.homes.set(request.sessionId, { worker, prefillWorker })
    const workers = prefillWorker === undefined ? [worker] : [worker, prefillWorker]
    this.#live.push({ lease, deadlineMs: nowMs + request.leaseMs, workers })
  }

  ended(ended: RouteLease): void {
    this.#live = this.#live.filter(({ lease }) => lease !== ended)
  }

  load(worker: FleetWorker): number {
    return Math.max(worker.reportedRequests, this.#live.filter(({ workers }) => workers.includes(worker.id)).length)
  }

  stats(): Pick<RouterStats, 'leases' | 'leasesByWorker'> {
    const leasesByWorker: Record<WorkerId, number> = {}
    for (const { workers } of this.#live) for (const worker of workers) leasesByWorker[worker] = (leasesByWorker[worker] ?? 0) + 1
    return { leases: this.#live.length, leasesByWorker }
  }

  #pick(candidates: readonly FleetWorker[], own: WorkerId | undefined): FleetWorker | undefined {
    const byLoadThenId = (a: FleetWorker, b: FleetWorker) => this.load(a) - this.load(b) || (a.id < b.id ? -1 : 1)
    return candidates.find((worker) => worker.id === own) ?? [...candidates].sort(byLoadThenId)[0]
  }
}
