import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { DeadlineHeap } from './deadline-heap.ts'

const item = (deadlineMs: number) => ({ deadlineMs, heapIndex: -1 })

describe('DeadlineHeap', () => {
  it('gives items by deadline, those that were removed left out', () => {
    const heap = new DeadlineHeap<ReturnType<typeof item>>()
    // A fixed shuffle with ties: 7 is prime to 100.
    const items = Array.from({ length: 100 }, (_, index) => item(((index * 7) % 100) >> 1))
    for (const each of items) heap.push(each)
    const removed = items.filter((_, index) => index % 3 === 0)
    for (const each of removed) heap.remove(each)
    for (const each of removed) heap.remove(each)
    const expected = items.filter((each) => !removed.includes(each)).map(({ deadlineMs }) => deadlineMs)
    assert.equal(heap.size, expected.length)

    const taken: number[] = []
    for (let next = heap.takeExpired(1000); next !== undefined; next = heap.takeExpired(1000)) taken.push(next.deadlineMs)
    assert.deepEqual(
      taken,
      expected.sort((a, b) => a - b),
    )
    assert.ok(items.every(({ heapIndex }) => heapIndex === -1))
  })

  it('gives nothing before its time', () => {
    const heap = new DeadlineHeap<ReturnType<typeof item>>()
    heap.push(item(10))
    assert.deepEqual([heap.takeExpired(9), heap.takeExpired(10)?.deadlineMs, heap.takeExpired(1000)], [undefined, 10, undefined])
  })

  it('forgets what it holds when it is cleared', () => {
    const heap = new DeadlineHeap<ReturnType<typeof item>>()
    const held = item(1)
    heap.push(held)
    heap.clear()
    heap.remove(held)
    assert.deepEqual([heap.size, held.heapIndex], [0, -1])
  })
})
