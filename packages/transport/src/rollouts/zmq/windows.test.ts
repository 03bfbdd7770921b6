import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fails } from '../../../test/fails.ts'
import { type ReceiverState, ReceiveWindow } from './receive-window.ts'
import { SendWindow } from './send-window.ts'

const actions = ['ship', 'tell', 'hear', 'send', 'deliver', 'take'] as const
const faults = ['save', 'duplicate', 'breakConnection', 'loseSilently', 'killSender', 'killReceiver'] as const
type Action = (typeof actions)[number] | (typeof faults)[number]

/** Both windows, the two ways between them, and what lies on disks: the batches, and the step of the trainer's last checkpoint. */
class World {
  readonly hwm: number
  shipped = 0
  saved = 0
  nowMs = 0
  sends = 0
  isTimeNeeded = false
  /** Steps that each receiver handed out. */
  readonly taken: number[][] = [[]]
  readonly starts: number[] = [0]
  #sender: SendWindow
  #receiver: ReceiveWindow<number>
  #states: ReceiverState[] = []
  #batches: number[] = []

  constructor(hwm: number) {
    this.hwm = hwm
    this.#sender = new SendWindow(0, hwm)
    this.#receiver = new ReceiveWindow(0, hwm)
  }

  /** What was said and sent arrives; the queue between them adds nothing to a step from here on. */
  drain(): void {
    while (this.#states.length > 0) this.do('hear', 0)
    while (this.#batches.length > 0) this.do('deliver', 0)
  }

  get position(): number {
    return (this.starts.at(-1) ?? 0) + (this.taken.at(-1)?.length ?? 0)
  }

  do(action: Action, random: number): void {
    switch (action) {
      case 'ship':
        if (this.shipped === 0 || !this.#sender.isHeld(this.shipped - 1)) this.shipped++
        return
      case 'tell':
        this.#states.push({ session: String(this.taken.length), next: this.#receiver.next, until: this.#receiver.until })
        return
      case 'hear': {
        const state = this.#states.shift()
        if (state !== undefined) this.#sender.hear(state, this.nowMs)
        return
      }
      case 'send': {
        const { due } = this.#sender
        if (due === undefined || due >= this.shipped) return
        this.#sender.noteSent(due, this.nowMs)
        this.sends++
        this.#batches.push(due)
        return
      }
      case 'deliver': {
        const step = this.#batches.shift()
        if (step !== undefined) this.#receiver.put(step, step, step)
        return
      }
      case 'take': {
        const step = this.#receiver.take()
        if (step !== undefined) this.taken.at(-1)?.push(step)
        return
      }
      case 'save':
        this.saved = this.position
        return
      case 'duplicate':
        if (this.shipped > 0) this.#receiver.put(random % this.shipped, random % this.shipped, random % this.shipped)
        return
      case 'breakConnection':
        this.#lose()
        this.#sender.lost()
        return
      case 'loseSilently':
        this.#lose()
        this.isTimeNeeded = true
        return
      case 'killSender':
        this.#lose()
        this.#sender = new SendWindow(this.saved, this.hwm)
        return
      case 'killReceiver':
        this.#lose()
        this.#sender.lost()
        this.#receiver = new ReceiveWindow(this.saved, this.hwm)
        this.taken.push([])
        this.starts.push(this.saved)
    }
  }

  #lose(): void {
    this.#states = []
    this.#batches = []
  }
}

const withoutTake = actions.filter((action) => action !== 'take')
const anyActions = fc.array(
  fc.tuple(fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...actions) }, fc.constantFrom(...faults)), fc.nat()),
  {
    maxLength: 400,
  },
)

describe('sender and receiver', () => {
  test('whoever is killed or cut off, each receiver hands out every step from its first one on, once and in order', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), anyActions, (hwm, steps) => {
        const world = new World(hwm)
        for (const [action, random] of steps) world.do(action, random)
        const total = world.shipped + 5
        // From here on nothing fails any more; time passes only where a loss went unnoticed.
        for (let round = 0; round < 20 * total + 40 && world.position < total; round++) {
          if (world.isTimeNeeded) world.nowMs += 3000
          for (const action of actions) if (action !== 'ship' || world.shipped < total) world.do(action, 0)
        }
        expect(world.position).toBe(total)
        for (const [index, taken] of world.taken.entries()) expect(taken).toEqual(taken.map((_, at) => (world.starts[index] ?? 0) + at))
      }),
      { numRuns: 2000 },
    )
  })

  test('where nothing fails, each batch travels once, and no more than hwm wait on either side', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(fc.constantFrom(...withoutTake), { maxLength: 300 }), (hwm, steps) => {
        const world = new World(hwm)
        for (const action of steps) world.do(action, 0)
        for (let round = 0; round < 400; round++) for (const action of withoutTake) world.do(action, 0)
        // Nothing was taken: so many lie with the receiver, and so many with the sender, besides the one that is held.
        expect(world.shipped).toBe(2 * hwm + 1)
        world.drain()
        for (let round = 0; round < 500; round++) for (const action of actions) world.do(action, 0)
        expect(world.sends).toBeGreaterThan(490)
        expect(world.sends - world.position).toBeLessThanOrEqual(hwm)
      }),
    )
  })
})

describe('a receiver', () => {
  test('keeps what it asked for, and says what becomes of the rest', () => {
    const window = new ReceiveWindow<string>(3, 2)
    expect([window.next, window.until]).toEqual([3, 5])
    expect(window.put(2, 2, 'old')).toBe('again')
    expect(window.put(5, 5, 'far')).toBe('outside')
    expect(window.put(4, 4, 'four')).toBe('kept')
    expect([window.next, window.take()]).toEqual([3, undefined])
    expect(window.put(3, 3, 'three')).toBe('kept')
    expect(window.put(3, 3, 'three')).toBe('again')
    expect([window.next, window.until]).toEqual([5, 5])
    expect([window.take(), window.take(), window.take()]).toEqual(['three', 'four', undefined])
    expect(window.put(4, 4, 'four')).toBe('again')
    expect([window.next, window.until]).toEqual([5, 7])
  })

  test('refuses another batch of a step that it has, or had', () => {
    const window = new ReceiveWindow<string>(0, 2)
    window.put(0, 1, 'ours')
    expect(() => window.put(0, 2, 'of another run')).toThrow(fails('ROLLOUTS_INVALID', /batch 0 came twice with different samples/))
    window.take()
    expect(() => window.put(0, 2, 'of another run')).toThrow(fails('ROLLOUTS_INVALID', /two orchestrators/))
  })
})

test('a sender goes on where the receiver is, whoever brought it there', () => {
  const window = new SendWindow(0, 4)
  window.hear({ session: 'a', next: 0, until: 4 }, 0)
  window.noteSent(0, 0)
  window.hear({ session: 'a', next: 3, until: 7 }, 10)
  expect([window.next, window.due]).toEqual([3, 3])
  // A receiver that was started anew from an earlier checkpoint.
  window.hear({ session: 'b', next: 1, until: 5 }, 20)
  expect([window.next, window.due, window.isHeld(4), window.isHeld(5)]).toEqual([1, 1, false, true])
})

test('a sender that hears of no progress sends again, later each time', () => {
  const window = new SendWindow(0, 4)
  const state = { session: 'a', next: 0, until: 4 }
  expect(window.due).toBeUndefined()
  expect(window.hear(state, 0)).toBe(true)
  window.noteSent(0, 0)
  const times: number[] = []
  for (let ms = 0; ms < 60_000; ms += 100) {
    expect(window.hear(state, ms)).toBe(false)
    if (window.due !== 0) continue
    times.push(ms)
    window.noteSent(0, ms)
  }
  expect(times).toEqual([5100, 15_200, 35_300])
})
