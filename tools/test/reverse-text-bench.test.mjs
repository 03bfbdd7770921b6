// @ts-check
import { expect, test } from 'vitest'
import { gainInErrors } from '../bench/reverse-text.mjs'

/** Steps of `groups` groups of answers with these rewards. @param {readonly (readonly number[][])[]} steps */
const stepsOf = (steps) =>
  steps.map((groups) => groups.flatMap((rewards, group) => rewards.map((reward) => ({ group: String(group), reward }))))

test('the gain is the difference of group means over its standard error', () => {
  // Means of groups 0 and 2 (variance 2, of the mean 1), then 3 and 5: the difference 3 over the root of 1 + 1.
  const steps = stepsOf([
    [[0, 0], [2]],
    [[9], [9]],
    [[3], [4, 6]],
  ])
  expect(gainInErrors(steps)).toBeCloseTo(3 / Math.SQRT2, 12)
})

test('many answers to one prompt are one observation', () => {
  const once = stepsOf([[[0], [2]], [], [[3], [5]]])
  const often = stepsOf([
    [
      [0, 0, 0, 0],
      [2, 2, 2, 2],
    ],
    [],
    [
      [3, 3],
      [5, 5],
    ],
  ])
  expect(gainInErrors(often)).toBe(gainInErrors(once))
})

test('a group of the same name in another step is another group', () => {
  const steps = stepsOf([[[0]], [[2]], [[1]], [[1]], [[3]], [[5]]])
  expect(gainInErrors(steps)).toBeCloseTo(3 / Math.SQRT2, 12)
})

test('noise around one mean gains nothing, in either direction', () => {
  const flat = stepsOf([[[1], [2]], [], [[2], [1]]])
  expect(gainInErrors(flat)).toBe(0)
  const falling = stepsOf([[[3], [5]], [], [[0], [2]]])
  expect(gainInErrors(falling)).toBeLessThan(-2)
})
