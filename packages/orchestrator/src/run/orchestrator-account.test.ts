import { stickyRouter } from '@trilithon/builtin'
import type { Router } from '@trilithon/core'
import { recordingLogger } from '@trilithon/testing'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { oldestOf } from '../dispatch/running-group.ts'
import { createWorld, groupOf, numberOf, stepEvents, type WorldOptions } from '../fakes/create-world.ts'
import { fraction } from '../source/random.ts'

const world = (options: Omit<WorldOptions, 'router'> = {}) =>
  createWorld({ router: stickyRouter.create({ config: {} } as never) as Router, ...options })

interface Rollout {
  readonly group: string
  /** Oldest version that sampled a token of it; undefined where it failed. */
  readonly oldest: number | undefined
}

/** A world that remembers how every episode ended: what the orchestrator does with them is added up against it. */
function recorded(options: Omit<WorldOptions, 'router'>) {
  const log = recordingLogger()
  const made = world({ ...options, log })
  const ended = new Map<string, Rollout>()
  const run = made.pool.run.bind(made.pool)
  made.pool.run = async (request, more) => {
    const result = await run(request, more)
    const oldest = result.error === undefined ? oldestOf(result.turns) : undefined
    if (result.error?.type !== 'Cancelled') ended.set(request.rolloutId, { group: request.groupId, oldest })
    return result
  }
  const { groupSize = 4 } = options
  /** Rollouts without an error, of groups of which every episode has ended. */
  const whole = () => {
    const groups = new Map<string, number>()
    for (const { group } of ended.values()) groups.set(group, (groups.get(group) ?? 0) + 1)
    return [...ended].filter(([, { group, oldest }]) => groups.get(group) === groupSize && oldest !== undefined).map(([id]) => id)
  }
  const shipped = () => made.trainer.batches.map(({ samples }) => samples.map(({ id }) => id.split('.').slice(0, 2).join('.')))
  const total = (key: string) => stepEvents(made).reduce((sum, { values }) => sum + (values[key] ?? 0), 0)
  const leftOut = () => log.lines.flatMap(({ message, fields }) => (message.startsWith('a task is too slow') ? [Number(fields.task)] : []))
  return { ...made, ended, whole, shipped, total, leftOut }
}

const arbitrary = fc.record({
  level: fc.integer({ min: 1, max: 2 }),
  bound: fc.integer({ min: 1, max: 3 }),
  seed: fc.nat(1000),
  tail: fc.integer({ min: 1, max: 4 }),
  stepMs: fc.constantFrom(1, 50, 300),
  inflight: fc.constantFrom(8, 24, 40),
  // Batches that are no multiple of groups, so that groups are shipped in parts.
  batchSize: fc.integer({ min: 3, max: 11 }),
  groupSize: fc.integer({ min: 2, max: 5 }),
  failing: fc.constantFrom(0, 0.2),
})
type Case = typeof arbitrary extends fc.Arbitrary<infer T> ? T : never
/** Far more episodes than batches take before they are too old. */
const tight: Case = { level: 1, bound: 1, seed: 1, tail: 1, stepMs: 50, inflight: 40, batchSize: 5, groupSize: 4, failing: 0.2 }
/** Groups wait as wholes while batches are shipped. */
const slow: Case = { level: 2, bound: 3, seed: 2, tail: 2, stepMs: 300, inflight: 40, batchSize: 6, groupSize: 3, failing: 0 }

const play = ({ level, bound, seed, tail, stepMs, inflight, batchSize, groupSize, failing }: Case) =>
  recorded({
    settings: { maxSteps: 9, maxAsyncLevel: level, maxOffPolicySteps: bound, maxInflight: inflight, batchSize },
    ...{ stepMs, groupSize },
    pool: {
      episode: (request) => ({
        ms: 20 + 400 * fraction(seed, numberOf(request)) ** tail,
        // Never all of a group: a task without any rollout is done with.
        ...(!request.rolloutId.endsWith('.0') && fraction(seed + 1, numberOf(request)) < failing
          ? { error: { type: 'Boom', message: 'no' } }
          : {}),
      }),
    },
  })

type Played = ReturnType<typeof play>

/** A rollout of a whole group is shipped, waits, or was too old and is counted: none is lost. */
function accountOfRollouts(made: Played): { readonly dropped: number; readonly waiting: number } {
  const shipped = made.shipped().flat()
  const whole = made.whole()
  const known = new Set(whole)
  expect(shipped.filter((id) => !known.has(id))).toEqual([])
  const dropped = made.total('staleness/dropped_in_queue')
  const waiting = made.orchestrator.state.pending
  expect(whole.length - shipped.length - dropped).toBe(waiting)
  return { dropped, waiting }
}

/** A batch takes nothing of a group of which something that waits is too old. */
function accountOfAges(made: Played, { bound }: Case): void {
  const gone = new Set<string>()
  const old: string[] = []
  for (const [step, ids] of made.shipped().entries()) {
    const groups = new Set(ids.map(groupOf))
    for (const [id, { group, oldest = step }] of made.ended)
      if (groups.has(group) && !gone.has(id) && step - oldest > bound) old.push(`${id} beside batch ${step}`)
    for (const id of ids) gone.add(id)
  }
  expect(old).toEqual([])
}

/** Beside every batch is saved which tasks are still to be trained: those of no batch, each once. */
function accountOfTasks(made: Played): void {
  const { send } = made.trainer.sender
  const trained = new Set<number>()
  const shippedGroups = new Set<string>()
  made.trainer.sender.send = async (step, samples, progress) => {
    await send(step, samples, progress)
    const { source } = made.trainer.batches.at(-1)?.progress ?? {}
    const taskOf = new Map(made.pool.requests.map(({ groupId, taskIndex }) => [groupId, taskIndex]))
    for (const group of new Set(samples.map(({ id }) => groupOf(id)))) {
      const task = taskOf.get(group) ?? -1
      // In parts over several batches, but never as two groups.
      expect(trained.has(task) && !shippedGroups.has(group)).toBe(false)
      trained.add(task)
      shippedGroups.add(group)
    }
    const open = (source?.returned ?? []).map(({ index }) => index)
    expect(new Set(open).size).toBe(open.length)
    expect(open.filter((index) => trained.has(index))).toEqual([])
    const known = new Set([...trained, ...open, ...made.leftOut()])
    const drawn = source?.environments.fake?.position ?? 0
    expect([...known].sort((one, other) => one - other)).toEqual(Array.from({ length: drawn }, (_, index) => index))
  }
}

it('every rollout and every task is accounted for, whatever the times', async () => {
  const seen = { dropped: 0, waiting: 0 }
  await fc.assert(
    fc.asyncProperty(arbitrary, async (one) => {
      const made = play(one)
      accountOfTasks(made)
      await made.run()
      const { dropped, waiting } = accountOfRollouts(made)
      accountOfAges(made, one)
      seen.dropped += dropped
      seen.waiting += waiting
    }),
    { numRuns: 20, examples: [[tight], [slow]] },
  )
  // Else it says nothing.
  expect(seen.dropped).toBeGreaterThan(0)
  expect(seen.waiting).toBeGreaterThan(0)
})

it('of ten groups that wait a batch of four takes four, and six are left', async () => {
  // Eighteen groups at once: two batches go, and the third waits for weights while the other ten finish.
  const made = recorded({
    settings: { maxSteps: 3, maxInflight: 72, batchSize: 16 },
    stepMs: 10_000,
    pool: { episode: (request) => ({ ms: request.taskIndex < 18 ? 100 : 1e6 }) },
  })
  const waiting: number[] = []
  void made.clock.sleep(9000).then(() => waiting.push(made.orchestrator.state.pending))
  await made.run()
  expect([...waiting, made.orchestrator.state.pending]).toEqual([40, 24])
  expect(made.shipped().map((ids) => new Set(ids.map(groupOf)).size)).toEqual([4, 4, 4])
})

it('turns that began another sequence are told of with every batch', async () => {
  const made = recorded({ settings: { maxInflight: 4, batchSize: 4 } })
  const run = made.pool.run.bind(made.pool)
  made.pool.run = async (request, more) => ({ ...(await run(request, more)), extensionBreaks: request.rolloutId.endsWith('.2') ? 6 : 0 })
  await made.run()
  for (const { values } of stepEvents(made))
    expect(values).toMatchObject({ 'extension_breaks/all/mean': 1.5, 'extension_breaks/fake/max': 1.5 })
  expect(stepEvents(made)).toHaveLength(3)
})

it('a sample has the reward, the advantage and the environment of its rollout, and the profile of the run', async () => {
  const reward = (request: Parameters<typeof numberOf>[0]) => fraction(3, numberOf(request))
  const made = recorded({
    settings: { profile: 'of-the-test' },
    pool: { name: 'letters', episode: (request) => ({ ms: 20, reward: reward(request) }) },
  })
  await made.run()
  const rewards = new Map(made.pool.requests.map((request) => [request.rolloutId, reward(request)]))
  for (const { samples } of made.trainer.batches)
    for (const { id, ...sample } of samples) {
      const group = [0, 1, 2, 3].map((index) => rewards.get(`${groupOf(id)}.${index}`) ?? Number.NaN)
      const own = rewards.get(id.split('.').slice(0, 2).join('.')) ?? Number.NaN
      expect(sample).toMatchObject({ environment: 'letters', reward: own, trainingMode: 'rl', profile: 'of-the-test' })
      expect(sample.advantage).toBeCloseTo(own - group.reduce((sum, one) => sum + one / 4, 0), 12)
    }
})
