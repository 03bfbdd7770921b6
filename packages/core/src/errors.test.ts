import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { combineProblems, type ErrorCode, errorCodes, formatSource, invariant, TrilithonError } from './errors.ts'

describe('the catalogue', () => {
  const document = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8')
  const headings = [...document.matchAll(/^#{2,} +([A-Z][A-Z0-9_]+)\s*$/gm)].map((match) => match[1])

  test('every code has one heading in docs/errors.md, and every heading is a code', () => {
    expect([...headings].sort()).toEqual(Object.keys(errorCodes).sort())
  })

  test('under its heading every code states its exit status', () => {
    for (const [code, status] of Object.entries(errorCodes)) {
      const section = document.split(new RegExp(`^#{2,} +${code}\\s*$`, 'm'))[1]?.split(/^#/m)[0]
      expect(section, code).toContain(`Exit status ${status}.`)
    }
  })
})

describe('TrilithonError', () => {
  const source = { kind: 'file', file: 'rl.toml', line: 3, column: 1 } as const

  test('says what, where and what next', () => {
    const cause = new Error('disk')
    const error = new TrilithonError('CONFIG_KEY_UNKNOWN', 'No key "sed".', { path: 'trainer.sed', source, hint: 'Write "seed".', cause })
    expect(error).toMatchObject({
      name: 'TrilithonError',
      code: 'CONFIG_KEY_UNKNOWN',
      path: 'trainer.sed',
      source,
      hint: 'Write "seed".',
      cause,
    })
    expect(error.exitStatus).toBe(2)
    expect(error.problems).toEqual([])
  })

  test('is recognised by its brand: also the error of another copy of core, or of the native package', () => {
    const foreign = Object.assign(new Error('x'), { code: 'SEAM_UNFILLED', [Symbol.for('@trilithon/error')]: true })
    expect(TrilithonError.is(foreign)).toBe(true)
    expect(TrilithonError.is(foreign, 'SEAM_UNFILLED')).toBe(true)
    expect(TrilithonError.is(foreign, 'SEAM_CONFLICT')).toBe(false)
    for (const other of [new Error('x'), { code: 'SEAM_UNFILLED' }, 'SEAM_UNFILLED', null, undefined])
      expect(TrilithonError.is(other)).toBe(false)
  })

  test('a code from a newer copy of core ends the process as a failed run', () => {
    expect(new TrilithonError('NOT_YET_INVENTED' as ErrorCode, 'x').exitStatus).toBe(1)
  })

  test('survives JSON with its problems, without keys that say nothing', () => {
    const problem = new TrilithonError('CONFIG_VALUE_INVALID', 'Too small.', { path: 'max_steps', source, details: { minimum: 1 } })
    const error = new TrilithonError('CONFIG_INVALID', '1 problem', { problems: [problem] })
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: 'CONFIG_INVALID',
      message: '1 problem',
      problems: [{ code: 'CONFIG_VALUE_INVALID', message: 'Too small.', path: 'max_steps', source, details: { minimum: 1 } }],
    })
  })
})

test('a source is named as one would say it', () => {
  expect(formatSource({ kind: 'file', file: 'rl.toml', line: 12, column: 1 })).toBe('rl.toml:12')
  expect(formatSource({ kind: 'flag', flag: '--max-steps' })).toBe('--max-steps')
  expect(formatSource({ kind: 'environment', variable: 'PRIME_LOG_LEVEL' })).toBe('$PRIME_LOG_LEVEL')
})

test('one problem stays itself; several become one error that carries them in order', () => {
  const [one, two] = [new TrilithonError('SEAM_UNFILLED', 'a'), new TrilithonError('USAGE_INVALID', 'b')]
  expect(combineProblems([one])).toBe(one)
  expect(combineProblems([two, one])).toMatchObject({ code: 'CONFIG_INVALID', message: '2 problems found', problems: [two, one] })
  expect(() => combineProblems([])).toThrow(expect.objectContaining({ code: 'INVARIANT_BROKEN' }))
})

test('an invariant that holds is silent; a broken one asks for a report', () => {
  expect(() => invariant(1, 'one is truthy')).not.toThrow()
  expect(() => invariant('', 'text is empty')).toThrow(
    expect.objectContaining({ code: 'INVARIANT_BROKEN', message: 'text is empty', hint: expect.stringContaining('report it') }),
  )
})
