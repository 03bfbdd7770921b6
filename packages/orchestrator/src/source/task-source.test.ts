import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { shuffled } from './random.ts'
import { maxReturns, SourcePosition, TaskSource } from './task-source.ts'

const env = (name: string, tasks: number | null, ratio: number | null = null) => ({ name, tasks, ratio })
const take = (source: TaskSource, count: number) => Array.from({ length: count }, () => source.next())

describe('the order of tasks', () => {
  it('walks every task once per epoch, in another order each time', () => {
    const source = new TaskSource([env('a', 10)])
    const epochs = [0, 1, 2].map(() => take(source, 10).map(({ index }) => index))
    for (const epoch of epochs) expect([...epoch].sort((one, other) => one - other)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(new Set(epochs.map(String)).size).toBe(3)
  })

  it('is that of the seed', () => {
    const order = (seed: number) => String(take(new TaskSource([env('a', 50)], seed), 50).map(({ index }) => index))
    expect(order(1)).toBe(order(1))
    expect(order(1)).not.toBe(order(2))
  })

  it('counts up where the environment is endless', () => {
    expect(take(new TaskSource([env('a', null)]), 3).map(({ index }) => index)).toEqual([0, 1, 2])
  })

  it.each([
    ['ratios', [env('a', 5, 3), env('b', null, 1)], 0.75],
    ['sizes', [env('a', 90), env('b', 10)], 0.9],
    ['equal shares beside an endless one', [env('a', 90), env('b', null)], 0.5],
  ])('mixes environments by %s', (_, environments, share) => {
    const drawn = take(new TaskSource(environments), 20_000)
    const counts = (from: number, to: number) => drawn.slice(from, to).filter(({ environment }) => environment === 'a').length
    // Not only in the long run: chance would be off by ten in a hundred.
    for (let from = 0; from < drawn.length; from += 100) expect(Math.abs(counts(from, from + 100) - 100 * share)).toBeLessThanOrEqual(3)
    expect(Math.abs(counts(0, drawn.length) / drawn.length - share)).toBeLessThan(0.001)
  })

  it('shuffles without preference', () => {
    const counts = [0, 0, 0]
    for (let seed = 0; seed < 3000; seed++) {
      const first = shuffled(3, seed)[0] ?? 0
      counts[first] = (counts[first] ?? 0) + 1
    }
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(120)
  })
})

describe('a position', () => {
  it('continues the order exactly, and draws the tasks of open groups again', () => {
    fc.assert(
      fc.property(fc.nat(60), fc.nat(8), fc.integer(), (before, open, seed) => {
        const environments = [env('a', 7), env('b', 11)]
        const source = new TaskSource(environments, seed)
        const drawn = take(source, before)
        const saved = SourcePosition.parse(JSON.parse(JSON.stringify(source.position(drawn.slice(-open || before)))))
        const resumed = new TaskSource(environments, seed, saved)
        const again = drawn.slice(-open || before)
        const count = again.length * 2 + 2
        const rest = take(resumed, count)
        // The tasks of open groups come again, once, and between them the ones that follow.
        expect(rest.filter((_, place) => place < count).map(String).length).toBe(count)
        for (const task of again) expect(rest).toContainEqual(task)
        const fresh = [...rest]
        for (const task of again)
          fresh.splice(
            fresh.findIndex((one) => one.environment === task.environment && one.index === task.index),
            1,
          )
        expect(fresh.length).toBe(count - again.length)
      }),
      { numRuns: 60 },
    )
  })

  it('gives each task of an epoch once over any number of resumes', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(4), { minLength: 1, maxLength: 10 }), (opens) => {
        let source = new TaskSource([env('a', 40)], 3)
        const done: number[] = []
        for (const open of opens) {
          const drawn = take(source, 4)
          done.push(...drawn.slice(0, 4 - open).map(({ index }) => index))
          const { returned, ...position } = source.position(drawn.slice(4 - open))
          source = new TaskSource([env('a', 40)], 3, { ...position, returned })
        }
        expect(new Set(done).size).toBe(done.length)
      }),
    )
  })
})

describe('a task that comes back', () => {
  it('is drawn again by turns with new ones, and is left out after too many times', () => {
    const source = new TaskSource([env('a', null)])
    let task = source.next()
    let returns = 0
    while (source.giveBack(task)) {
      const next = take(source, 2).filter(({ index }) => index === 0)
      expect(next).toHaveLength(1)
      task = next[0] ?? task
      returns++
    }
    expect(returns).toBe(maxReturns)
  })

  it('and is left out makes room for another one of its environment, over a resume too', () => {
    const environments = [env('a', null, 9), env('b', null, 1)]
    const source = new TaskSource(environments)
    const given = take(source, 100).filter(({ environment }) => environment === 'b')
    for (const task of given) expect(source.giveBack({ ...task, returns: maxReturns })).toBe(false)
    const saved = SourcePosition.parse(JSON.parse(JSON.stringify(source.position([]))))
    for (const one of [source, new TaskSource(environments, undefined, saved)]) {
      const drawn = take(one, 200)
      const replaced = drawn.filter(({ environment }) => environment === 'b').length
      expect(replaced).toBeGreaterThanOrEqual(given.length + 17)
      expect(replaced).toBeLessThanOrEqual(given.length + 23)
      // None of those that were left out.
      expect(drawn.some((task) => given.some(({ environment, index }) => task.environment === environment && task.index === index))).toBe(
        false,
      )
    }
  })

  it('cannot keep new ones away', () => {
    const source = new TaskSource([env('a', null)])
    const slow = take(source, 100)
    for (const task of slow) source.giveBack(task)
    expect(take(source, 40).filter(({ index }) => index >= 100)).toHaveLength(20)
  })
})
