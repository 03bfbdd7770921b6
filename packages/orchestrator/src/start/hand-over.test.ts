import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { handOver } from './hand-over.ts'

/** A sender whose trainer never has all, and a watch that tells of versions when it is told to. */
function world(delivered: (signal?: AbortSignal) => Promise<void>) {
  const told: ((version: number) => void)[] = []
  let isWatching = false
  let waits = 0
  const controller = new AbortController()
  const over = handOver({
    sender: { delivered },
    watch: async (onVersion, { signal }) => {
      isWatching = true
      told.push(onVersion)
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
      isWatching = false
    },
    ...{ steps: 3, signal: controller.signal, sayMs: 5, onWait: () => waits++ },
  })
  return { over, tell: (version: number) => told[0]?.(version), end: () => controller.abort(), state: () => ({ isWatching, waits }) }
}

const untilAborted = (signal?: AbortSignal) =>
  new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }))

it('ends when the trainer has all batches, and waits no longer for weights', async () => {
  const { over, state } = world(async () => undefined)
  await over
  const { waits } = state()
  await sleep(30)
  expect(state()).toEqual({ isWatching: false, waits })
})

it('says that it waits, and ends with the weights behind the last batch or by the signal', async () => {
  const one = world(untilAborted)
  one.tell(2)
  await expect.poll(() => one.state().waits).toBeGreaterThan(1)
  expect(one.state().isWatching).toBe(true)
  one.tell(3)
  await one.over
  const other = world(untilAborted)
  other.end()
  await other.over
  expect(other.state().isWatching).toBe(false)
})

it('fails with what keeps batches from the trainer', async () => {
  const { over, state } = world(async () => {
    throw new Error('no file')
  })
  await expect(over).rejects.toThrow('no file')
  expect(state().isWatching).toBe(false)
})
