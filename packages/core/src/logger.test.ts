import { expect, test, vi } from 'vitest'
import { logLevels, silentLogger } from './logger.ts'

test('the silent logger has every level, takes fields and writes nothing', () => {
  const out = vi.spyOn(process.stdout, 'write')
  const err = vi.spyOn(process.stderr, 'write')
  for (const level of logLevels) silentLogger.child({ seam: 'router' })[level]('weights published', { version: 1 })
  expect([out.mock.calls, err.mock.calls]).toEqual([[], []])
  vi.restoreAllMocks()
})
