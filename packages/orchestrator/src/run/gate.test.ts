import { expect, it } from 'vitest'
import { Gate } from './gate.ts'

it.each([
  // level, bound -> effective level and bound
  [1, 8, 1, 8],
  [0, 8, 0, 0],
  [2, 1, 1, 1],
  [2, 0, 0, 0],
])('level %i with bound %i is level %i with bound %i', (level, bound, effectiveLevel, effectiveBound) => {
  const gate = new Gate({ level, bound }, { version: 0, step: 0 })
  expect([gate.level, gate.bound]).toEqual([effectiveLevel, effectiveBound])
})

it.each([
  // level, step, version -> open, may ship
  [1, 0, 0, true, true],
  [1, 1, 0, true, true],
  // The step counts the batch that was shipped right away: one more closes the gate.
  [1, 2, 0, false, false],
  [1, 2, 1, true, true],
  [0, 0, 0, true, true],
  [0, 1, 0, false, false],
  [0, 1, 1, true, true],
  [2, 2, 0, true, true],
  [2, 3, 0, false, false],
])('level %i, step %i, version %i', (level, step, version, isOpen, mayShip) => {
  const gate = new Gate({ level, bound: 8 }, { version, step })
  expect([gate.isOpen, gate.mayShip]).toEqual([isOpen, mayShip])
})

it('measures age against the next batch', () => {
  const gate = new Gate({ level: 1, bound: 2 }, { version: 4, step: 5 })
  expect([3, 2].map((oldest) => gate.isStale(oldest))).toEqual([false, true])
})
