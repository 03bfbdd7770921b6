import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { RecencyMap } from './recency-map.ts'

const filled = (...keys: string[]) => {
  const map = new RecencyMap<number>()
  for (const [index, key] of keys.entries()) map.use(key, index)
  return map
}
const order = (map: RecencyMap<number>) => Array.from(map, ([key]) => key).join('')

describe('RecencyMap', () => {
  it('orders entries by their last use, wherever that entry stood', () => {
    for (const [used, expected] of [
      ['a', 'bcda'],
      ['b', 'acdb'],
      ['d', 'abcd'],
      ['e', 'abcde'],
    ] as const) {
      const map = filled('a', 'b', 'c', 'd')
      map.use(used, 9)
      assert.equal(order(map), expected)
      assert.equal(map.peek(used), 9)
      assert.equal(map.size, expected.length)
    }
  })

  it('keeps the order of the others when one is deleted', () => {
    for (const [deleted, expected] of [
      ['a', 'bcd'],
      ['b', 'acd'],
      ['d', 'abc'],
      ['x', 'abcd'],
    ] as const) {
      const map = filled('a', 'b', 'c', 'd')
      map.delete(deleted)
      map.use('e', 5)
      assert.equal(order(map), `${expected}e`)
      assert.equal(map.has(deleted), false)
    }
  })

  it('may lose entries while it is walked', () => {
    const map = filled('a', 'b', 'c')
    for (const [key] of map) map.delete(key)
    assert.deepEqual([order(map), map.size], ['', 0])
    map.use('d', 1)
    assert.equal(order(map), 'd')
  })

  it('takes new entries after it was cleared', () => {
    const map = filled('a', 'b')
    map.clear()
    map.use('a', 7)
    assert.deepEqual([...map], [['a', 7]])
  })
})
