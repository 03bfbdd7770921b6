import fc from 'fast-check'
import { expect, it } from 'vitest'
import { cells, duration, fitLine, round, sparkline } from './text.ts'

it('times and numbers as people write them', () => {
  expect([duration(3723), duration(5), duration(-1), duration(59.6), round(2.5)]).toEqual(['1:02:03', '0:05', '0:00', '1:00', '3'])
})

it('a course in a few characters', () => {
  expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8)).toBe('▁▂▃▄▅▆▇█')
  expect(sparkline([0, 0, 7, 7], 2)).toBe('▁█')
  expect(sparkline([3, 3, Number.NaN], 10)).toBe('▁▁')
  expect(sparkline([], 10)).toBe('')
})

it('a line never takes more cells than it may, and is whole where it fits', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 40 }), (text, columns) => {
      const line = fitLine(text, columns)
      expect(cells(line)).toBeLessThanOrEqual(columns)
      expect(line).not.toMatch(/\p{Control}/u)
    }),
  )
  expect([fitLine('a\u001b[2J\nb', 20), fitLine('漢字 kana', 5), fitLine('abcdef', 6)]).toEqual(['a [2J b', '漢字…', 'abcdef'])
})
