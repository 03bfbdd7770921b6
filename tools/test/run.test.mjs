// @ts-check
import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { run } from '../lib/run.mjs'

const options = { cwd: tmpdir(), env: process.env }

test('status and both outputs come back, and are seen while it runs', async () => {
  /** @type {string[]} */
  const seen = []
  const onOutput = (/** @type {Buffer} */ chunk) => seen.push(chunk.toString())
  const result = await run('sh', ['-c', 'echo out; echo err >&2; exit 4'], { ...options, onOutput })
  expect(result).toMatchObject({ status: 4, end: 'exit' })
  expect(result.output.split('\n').sort()).toEqual(['', 'err', 'out'])
  expect(seen.join('')).toBe(result.output)
})

test('a program that is not there is status 127 with its name', async () => {
  expect(await run('no-such-program', [], options)).toEqual({
    status: 127,
    end: 'exit',
    output: expect.stringContaining('no-such-program'),
  })
})

test('a program over its budget is ended with what it started, although it does not listen', async () => {
  const started = Date.now()
  const result = await run('sh', ['-c', 'trap "" TERM; (sleep 60; echo late) & echo early; wait'], { ...options, budgetS: 0.3 })
  expect(result).toMatchObject({ end: 'budget', output: 'early\n' })
  expect(result.status).not.toBe(0)
  expect(Date.now() - started).toBeLessThan(10_000)
})
