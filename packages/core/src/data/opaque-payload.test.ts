import { expect, test } from 'vitest'
import { missingRows, routedLayout } from './opaque-payload.ts'

test.for([
  { experts: 8, topK: 1, dtype: 'uint8' },
  { experts: 255, topK: 1, dtype: 'uint8' },
  // 255 would be a real expert, and a row of a single 255 the mark of a missing one.
  { experts: 256, topK: 1, dtype: 'uint16' },
  { experts: 256, topK: 2, dtype: 'uint8' },
  { experts: 257, topK: 8, dtype: 'uint16' },
  { experts: 512, topK: 8, dtype: 'uint16' },
])('$experts experts, top $topK: $dtype', ({ experts, topK, dtype }) => {
  expect(routedLayout({ experts, layers: 3, topK })).toEqual({ dtype, layers: 3, topK, rowBytes: 3 * topK * (dtype === 'uint8' ? 1 : 2) })
})

test('no row of distinct experts has all bits set, whatever the counts', () => {
  for (const experts of [1, 2, 254, 255, 256, 257, 65535])
    for (const topK of [1, 2, 8].filter((k) => k <= experts)) {
      const { dtype } = routedLayout({ experts, layers: 1, topK })
      const mark = dtype === 'uint8' ? 0xff : 0xffff
      const highest = Array.from({ length: topK }, (_, index) => experts - 1 - index)
      expect(highest.every((expert) => expert === mark)).toBe(false)
      expect(Math.max(...highest)).toBeLessThanOrEqual(mark)
    }
})

test('missing rows have all bits set', () => {
  const layout = routedLayout({ experts: 300, layers: 2, topK: 4 })
  const { data, shape, dtype } = missingRows(layout, 3)
  expect({ shape, dtype, bytes: data.length }).toEqual({ shape: [3, 2, 4], dtype: 'uint16', bytes: 48 })
  expect(data.every((byte) => byte === 0xff)).toBe(true)
  expect(missingRows(layout, 0)).toMatchObject({ data: new Uint8Array(0), shape: [0, 2, 4] })
})
