import fc from 'fast-check'
import { expect, it } from 'vitest'
import { VersionHolds } from './version-holds.ts'

/** A folder of versions: what is held, and how often too much was given back. */
function folder() {
  const held = new Set<number>()
  const gone = new Set<number>()
  const holds = new VersionHolds((version) => {
    if (gone.has(version)) return null
    expect(held.has(version)).toBe(false)
    held.add(version)
    return { release: () => expect(held.delete(version)).toBe(true) }
  })
  return { held, gone, holds }
}

it('keeps the version that serves until the next one does, and what is on its way', () => {
  const { held, gone, holds } = folder()
  expect(holds.begin(1)).toBe(true)
  expect(holds.begin(1)).toBe(true)
  holds.served(1)
  expect(holds.begin(3)).toBe(true)
  expect([...held]).toEqual([1, 3])
  // Given up for a newer one, because no engine was left.
  expect(holds.begin(5)).toBe(true)
  expect([...held]).toEqual([1, 5])
  gone.add(7)
  expect(holds.begin(7)).toBe(false)
  expect([...held]).toEqual([1, 5])
  holds.served(5)
  expect([...held]).toEqual([5])
  holds.dispose()
  holds.dispose()
  expect([...held]).toEqual([])
})

it('holds two at most, and never lets go of the one that serves', () => {
  const calls = fc.array(fc.record({ version: fc.nat(9), kind: fc.constantFrom('begin', 'served', 'gone') }), { maxLength: 40 })
  fc.assert(
    fc.property(calls, (list) => {
      const { held, gone, holds } = folder()
      let served: number | undefined
      for (const { version, kind } of list) {
        if (kind === 'gone') gone.add(version)
        else if (holds.begin(version) && kind === 'served') {
          holds.served(version)
          served = version
        }
        expect(held.size).toBeLessThanOrEqual(2)
        if (served !== undefined) expect(held.has(served)).toBe(true)
      }
      holds.dispose()
      expect(held.size).toBe(0)
    }),
  )
})
