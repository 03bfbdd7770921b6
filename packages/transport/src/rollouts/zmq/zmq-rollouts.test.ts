import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Logger, rolloutPorts, type Sample, silentLogger } from '@trilithon/core'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { Publisher, Pull, Push } from 'zeromq'
import { type CutThrough, cutThrough } from '../../../test/cut-through.ts'
import { fails } from '../../../test/fails.ts'
import { goldenBatch, goldenSample } from '../../../test/fake-samples.ts'
import { freePort } from '../../../test/free-port.ts'
import { temporaryFolder } from '../../../test/temporary-folder.ts'
import { openRolloutReceiver, openRolloutSender } from '../open-rollouts.ts'
import { readProgress, rolloutStepFolder } from '../rollout-folder.ts'
import type { RolloutReceiver } from '../rollout-receiver.ts'
import type { RolloutSender } from '../rollout-sender.ts'
import { encodeTrainingBatch } from '../training-batch.ts'
import { unknownVersion } from '../wire-fields.ts'
import { addressOf, encodeState } from './zmq-wire.ts'

const { routedExperts: _none, ...plain } = goldenSample
const plainSample: Sample = plain
const named = (id: string): Sample => ({ ...goldenSample, id })

/** Closed at the end of a test, last first. */
const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close()
})
const closing = <T extends { dispose(): unknown } | { close(): unknown }>(one: T): T => {
  open.push(() => ('dispose' in one ? one.dispose() : one.close()))
  return one
}

interface Side {
  readonly rollouts: string
  readonly port: number
  readonly hwm?: number
  readonly firstStep?: number
  readonly log?: Logger
}
const transportOf = ({ port, hwm = 10 }: Side) => ({ type: 'zmq', host: '127.0.0.1', port, hwm }) as const
const optionsOf = (side: Side) => ({
  ...{ transport: transportOf(side), rollouts: side.rollouts, firstStep: side.firstStep ?? 0 },
  ...(side.log === undefined ? {} : { log: side.log }),
})
const openSender = async (side: Side) => closing(await openRolloutSender(optionsOf(side)))
const openReceiver = async (side: Side) => closing(await openRolloutReceiver(optionsOf(side)))
async function newSide(more: Partial<Side> = {}): Promise<Side> {
  const rollouts = join(temporaryFolder(), 'run_default', 'rollouts')
  mkdirSync(rollouts, { recursive: true })
  return { rollouts, port: await freePort(), ...more }
}
async function rawPush(port: number): Promise<Push> {
  const push = closing(new Push({ linger: 0 }))
  push.connect(addressOf('127.0.0.1', port))
  return push
}
const batchFile = ({ rollouts }: Side, step: number) => join(rolloutStepFolder(rollouts, step), 'train_rollouts.bin')

describe('batches over sockets', () => {
  test('arrive once, in order, with their expert rows, from files that stay', async () => {
    const side = await newSide()
    const receiver = await openReceiver(side)
    const sender = await openSender(side)
    const waiting = receiver.next()
    await sender.send(0, [named('a'), named('b')], { next: 1 })
    await sender.send(1, [plainSample], { next: 2 })
    expect(await waiting).toEqual({ step: 0, samples: [named('a'), named('b')] })
    expect(await receiver.next()).toEqual({ step: 1, samples: [plainSample] })
    expect(readProgress(side.rollouts, 1)).toEqual({ next: 2 })
    await sender.delivered()
    await expect(receiver.next(AbortSignal.timeout(300))).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  test.each(['orchestrator', 'trainer'])('the %s may come later', async (late) => {
    const side = await newSide()
    const first = late === 'trainer' ? await openSender(side) : await openReceiver(side)
    if (late === 'trainer') await (first as RolloutSender).send(0, [named('early')], {})
    await sleep(300)
    const second = late === 'trainer' ? await openReceiver(side) : await openSender(side)
    if (late === 'orchestrator') await (second as RolloutSender).send(0, [named('early')], {})
    const receiver = (late === 'trainer' ? second : first) as RolloutReceiver
    expect((await receiver.next()).samples).toEqual([named('early')])
  })

  test('a trainer that begins behind a checkpoint gets the batches from there on, out of the files of an orchestrator before', async () => {
    const side = await newSide()
    const before = await openSender(side)
    for (const step of [0, 1, 2, 3]) await before.send(step, [named(`of ${step}`)], {})
    await before.dispose()
    const after = await openSender({ ...side, firstStep: 2 })
    const receiver = await openReceiver({ ...side, firstStep: 2 })
    expect([(await receiver.next()).step, (await receiver.next()).step]).toEqual([2, 3])
    await after.send(4, [named('of 4')], {})
    expect((await receiver.next()).samples).toEqual([named('of 4')])
    await after.delivered()
  })

  test('the orchestrator is held when hwm batches wait on either side, goes on when one is taken, and a signal ends the waiting', async () => {
    const side = await newSide({ hwm: 2 })
    const sender = await openSender(side)
    let shipped = 0
    const shipping = (async () => {
      for (let step = 0; step < 8; step++) {
        await sender.send(step, [plainSample], {})
        shipped++
      }
    })()
    await expect.poll(() => shipped).toBe(2)
    const receiver = await openReceiver(side)
    await expect.poll(() => shipped).toBe(4)
    await sleep(300)
    expect(shipped).toBe(4)
    expect((await receiver.next()).step).toBe(0)
    await expect.poll(() => shipped).toBe(5)
    for (let step = 1; step < 8; step++) expect((await receiver.next()).step).toBe(step)
    await shipping
    await receiver.dispose()
    const alone = await openSender({ ...side, firstStep: 8 })
    for (const step of [8, 9]) await alone.send(step, [plainSample], {})
    const signal = AbortSignal.timeout(200)
    await alone.send(10, [plainSample], {}, signal)
    expect(signal.aborted).toBe(true)
    expect(readFileSync(batchFile(side, 10)).length).toBeGreaterThan(0)
    await alone.delivered(signal)
  })

  test('nobody has them all before the trainer says so', async () => {
    const side = await newSide()
    const sender = await openSender(side)
    await sender.delivered()
    await sender.send(0, [plainSample], {})
    let isDelivered = false
    const delivered = sender.delivered().then(() => {
      isDelivered = true
    })
    await sleep(200)
    expect(isDelivered).toBe(false)
    await openReceiver(side)
    await delivered
  })
})

describe('the wire', () => {
  test("takes what prime-rl's orchestrator sends", async () => {
    const side = await newSide({ firstStep: 7 })
    const receiver = await openReceiver(side)
    await (await rawPush(side.port)).send(['run_default', Buffer.from(goldenBatch, 'hex')])
    const unknown = Uint32Array.of(unknownVersion, unknownVersion)
    const sample = { ...goldenSample, id: '', profile: '', versions: unknown, contextVersionsMin: unknown }
    expect(await receiver.next()).toEqual({ step: 7, samples: [sample] })
  })

  test('carries the run, the bytes of the file, and the expert rows as they are', async () => {
    const side = await newSide()
    const [port, statePort] = rolloutPorts(side.port)
    const pull = closing(new Pull())
    const publisher = closing(new Publisher({ linger: 0 }))
    await pull.bind(addressOf('127.0.0.1', port))
    await publisher.bind(addressOf('127.0.0.1', statePort))
    const sender = await openSender(side)
    await sender.send(0, [goldenSample, plainSample, named('c')], {})
    await sender.send(1, [plainSample], {})
    const timer = setInterval(() => void publisher.send(['run_default', encodeState({ session: 's', next: 0, until: 2 })]), 50)
    const frames = [await pull.receive(), await pull.receive()]
    clearInterval(timer)
    const [first = [], second = []] = frames
    expect(first.map(({ length }) => length)).toEqual([11, readFileSync(batchFile(side, 0)).length, 16])
    expect(first[0]?.toString()).toBe('run_default')
    expect(first[1]?.equals(encodeTrainingBatch({ step: 0, samples: [goldenSample, plainSample, named('c')] }).bytes)).toBe(true)
    expect([...(first[2] ?? [])]).toEqual([0, 1, 2, 3, 4, 5, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0])
    expect(second).toHaveLength(2)
  })
})

describe('what should not come', () => {
  test('batches of another run are left, and that is said once', async () => {
    const lines: unknown[] = []
    const log = { ...silentLogger, warn: (message: string, fields?: object) => void lines.push([message, fields]) }
    const side = await newSide({ log })
    const receiver = await openReceiver(side)
    const push = await rawPush(side.port)
    for (const run of ['run_other', 'run_other', 'run_default'])
      await push.send([run, encodeTrainingBatch({ step: 0, samples: [{ ...plainSample, id: run }] }).bytes])
    expect((await receiver.next()).samples.map(({ id }) => id)).toEqual(['run_default'])
    expect(lines).toEqual([['batches of another run came and were not taken', { run: 'run_other', taken: 'run_default' }]])
  })

  test('what cannot be read is told once to whoever waits, and the step is still to come', async () => {
    const side = await newSide()
    const receiver = await openReceiver(side)
    const push = await rawPush(side.port)
    const { bytes, experts } = encodeTrainingBatch({ step: 0, samples: [goldenSample] })
    const broken: [frames: (string | Uint8Array)[], message: RegExp][] = [
      [['run_default', 'no message pack'], /over ZeroMQ/],
      [['run_default'], /two or three frames/],
      [['run_default', bytes, ...experts, 'more'], /two or three frames/],
      [['run_default', bytes], /there is none/],
      [['run_default', bytes, 'short'], /lies outside/],
    ]
    for (const [frames, message] of broken) {
      await push.send(frames)
      await expect(receiver.next()).rejects.toThrow(fails('ROLLOUTS_INVALID', message))
    }
    await push.send(['run_default', bytes, ...experts])
    expect((await receiver.next()).samples).toEqual([goldenSample])
  })

  test('batches of a second orchestrator are not mixed with those of the first', async () => {
    const side = await newSide()
    const receiver = await openReceiver(side)
    const push = await rawPush(side.port)
    for (const id of ['ours', 'ours', 'theirs'])
      await push.send(['run_default', encodeTrainingBatch({ step: 0, samples: [{ ...plainSample, id }] }).bytes])
    expect((await receiver.next()).samples.map(({ id }) => id)).toEqual(['ours'])
    await expect(receiver.next()).rejects.toMatchObject({
      ...{ code: 'ROLLOUTS_INVALID', path: 'rollout_transport.port' },
      message: expect.stringMatching(/two orchestrators/),
    })
  })

  test('two waits at once', async () => {
    const receiver = await openReceiver(await newSide())
    const waiting = receiver.next(AbortSignal.timeout(100))
    await expect(receiver.next()).rejects.toThrow(fails('ROLLOUTS_INVALID', /being waited for already/))
    await expect(waiting).rejects.toMatchObject({ name: 'TimeoutError' })
  })

  test('talk of a program that is no trainer is not listened to', async () => {
    const side = await newSide()
    const [, statePort] = rolloutPorts(side.port)
    const publisher = closing(new Publisher({ linger: 0 }))
    await publisher.bind(addressOf('127.0.0.1', statePort))
    const sender = await openSender(side)
    await sender.send(0, [plainSample], {})
    const words = ['', 'null', '7', '{', '{"session":1,"next":1,"until":2}', '{"session":"s","next":-1,"until":2}']
    const timer = setInterval(() => {
      for (const word of words) void publisher.send(['run_default', word]).catch(() => undefined)
      void publisher.send(['run_default_2', encodeState({ session: 's', next: 1, until: 2 })]).catch(() => undefined)
    }, 50)
    const signal = AbortSignal.timeout(400)
    await sender.delivered(signal)
    clearInterval(timer)
    expect(signal.aborted).toBe(true)
  })

  test.each([0, 1])('a port that is taken, the one of number %d: says which key, and leaves the other', async (index) => {
    const side = await newSide()
    const taken = new Pull()
    const address = addressOf('127.0.0.1', rolloutPorts(side.port)[index] ?? 0)
    await taken.bind(address)
    await expect(openReceiver(side)).rejects.toMatchObject({
      ...{ code: 'PORT_IN_USE', path: 'rollout_transport.port', exitStatus: 2 },
      message: expect.stringContaining(address),
    })
    taken.close()
    await expect.poll(() => openReceiver(side).then(() => 'open', String)).toBe('open')
  })

  test('an address that is none of this machine', async () => {
    const { port, rollouts } = await newSide()
    const transport = { type: 'zmq', host: '192.0.2.1', port, hwm: 1 } as const
    await expect(openRolloutReceiver({ transport, rollouts, firstStep: 0 })).rejects.toMatchObject({
      code: 'CONFIG_VALUE_INVALID',
      path: 'rollout_transport.host',
    })
  })
})

test('a file that cannot be read fails whoever ships', async () => {
  const side = await newSide()
  await openReceiver(side)
  mkdirSync(batchFile(side, 0), { recursive: true })
  const sender = await openSender({ ...side, firstStep: 0, hwm: 1 })
  await expect(sender.delivered()).rejects.toThrow(fails('ROLLOUTS_INVALID', /cannot be read|EISDIR/))
})

/** Large enough that a connection breaks within it. */
const sampleOfStep = (step: number) => ({
  ...goldenSample,
  id: `sample ${step}`,
  routedExperts: { data: new Uint8Array(1 << 19).fill(step), shape: [1 << 17, 2, 2], dtype: 'uint8' } as const,
})

/** Restarts, cuts and repetitions at moments that are drawn; every batch is read from a folder, as an orchestrator that was killed finds it. */
class Run {
  readonly #near: Side
  readonly #far: Side
  readonly #between: readonly CutThrough[]
  #sender: RolloutSender | undefined
  #receiver: RolloutReceiver | undefined
  #shipping = new AbortController()
  #shipped: Promise<unknown> = Promise.resolve()
  /** Of the trainer's checkpoint. */
  #saved = 0
  #next = 0
  shippedSteps = 0
  /** Of each trainer: the steps that it got, and the first that it asked for. */
  readonly trained: number[][] = []
  readonly starts: number[] = []

  constructor(near: Side, far: Side, between: readonly CutThrough[]) {
    this.#near = near
    this.#far = far
    this.#between = between
  }

  get position(): number {
    return this.#next
  }

  async do(action: (typeof moves)[number]): Promise<void> {
    if (action === 'cut') for (const one of this.#between) one.cut()
    if (action === 'lose') {
      for (const one of this.#between) one.swallow()
      await this.ship()
      await sleep(20)
      for (const one of this.#between) one.cut()
    }
    if (action === 'ship') await this.ship()
    if (action === 'train') await this.train(AbortSignal.timeout(60))
    if (action === 'save') this.#saved = this.#next
    if (action === 'restart orchestrator') await this.restartOrchestrator()
    if (action === 'restart trainer') await this.restartTrainer()
    if (action === 'repeat' && this.shippedSteps > 0) {
      const push = new Push({ linger: 0 })
      push.connect(addressOf('127.0.0.1', this.#far.port))
      const step = this.#next % this.shippedSteps
      await push.send(['run_default', readFileSync(batchFile(this.#near, step)), sampleOfStep(step).routedExperts.data])
      await sleep(5)
      push.close()
    }
  }

  /** In the background where it is held. */
  async ship(): Promise<void> {
    await Promise.race([this.#shipped, sleep(100)])
    if (this.#sender === undefined) await this.restartOrchestrator()
    const { signal } = this.#shipping
    const step = this.shippedSteps
    const sent = this.#sender?.send(step, [sampleOfStep(step)], {}, signal)
    await expect.poll(() => existsSync(batchFile(this.#near, step))).toBe(true)
    this.shippedSteps++
    this.#shipped = Promise.all([this.#shipped, sent])
  }

  async train(signal: AbortSignal, mustCome = false): Promise<void> {
    if (this.#receiver === undefined) await this.restartTrainer()
    try {
      const batch = await this.#receiver?.next(signal)
      const { step = -1, samples: [sample] = [] } = batch ?? {}
      expect(sample?.id).toBe(`sample ${step}`)
      expect(sample?.routedExperts?.data.every((byte) => byte === step)).toBe(true)
      this.trained.at(-1)?.push(step)
      this.#next++
    } catch (error) {
      if (!signal.aborted || mustCome) throw error
    }
  }

  async restartOrchestrator(): Promise<void> {
    this.#shipping.abort()
    await this.#sender?.dispose()
    await this.#shipped
    this.#shipping = new AbortController()
    this.#sender = await openRolloutSender(optionsOf({ ...this.#near, firstStep: this.#saved }))
  }

  async restartTrainer(): Promise<void> {
    await this.#receiver?.dispose()
    this.#next = this.#saved
    this.trained.push([])
    this.starts.push(this.#saved)
    // The system frees a port a moment after its socket is closed.
    await expect
      .poll(async () => {
        this.#receiver = await openRolloutReceiver(optionsOf({ ...this.#far, firstStep: this.#saved })).catch(() => undefined)
        return this.#receiver !== undefined
      })
      .toBe(true)
  }

  async end(): Promise<void> {
    this.#shipping.abort()
    await this.#sender?.dispose()
    await this.#receiver?.dispose()
    await this.#shipped
  }
}

const moves = ['ship', 'train', 'save', 'cut', 'lose', 'repeat', 'restart orchestrator', 'restart trainer'] as const
const anyMoves = fc.array(
  fc.oneof({ weight: 3, arbitrary: fc.constantFrom('ship' as const, 'train' as const) }, fc.constantFrom(...moves)),
  { maxLength: 16 },
)

test('whoever is restarted or cut off, and whatever comes again: each trainer gets each batch from its first one on, once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 3 }), anyMoves, async (hwm, list) => {
      const near = await newSide({ hwm })
      const far = { ...near, port: await freePort() }
      const ports = rolloutPorts(far.port)
      const between = await Promise.all(rolloutPorts(near.port).map((port, index) => cutThrough(port, ports[index] ?? 0)))
      const run = new Run(near, far, between)
      try {
        for (const action of list) await run.do(action)
        await run.ship()
        // Sooner than a sender sends again for want of progress: a loss is noticed.
        while (run.position < run.shippedSteps) await run.train(AbortSignal.timeout(4500), true)
        for (const [index, steps] of run.trained.entries()) expect(steps).toEqual(steps.map((_, at) => (run.starts[index] ?? 0) + at))
      } finally {
        await run.end()
        await Promise.all(between.map((one) => one.close()))
      }
    }),
    {
      ...{ numRuns: 8, endOnFailure: true },
      examples: [
        [2, ['ship', ...Array<'train'>(6).fill('train'), 'lose', 'lose']],
        [1, ['ship', 'train', 'save', 'ship', 'train', 'restart trainer', 'restart orchestrator']],
        [3, ['ship', 'ship', 'train', 'repeat', 'restart trainer', 'cut', 'train', 'repeat']],
      ],
    },
  )
}, 60_000)
