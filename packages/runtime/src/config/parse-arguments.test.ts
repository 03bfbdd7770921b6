import { describe, expect, it } from 'vitest'
import { parseArguments } from './parse-arguments.ts'
import type { Expectation } from './shape.ts'

const kinds: Record<string, Expectation> = { flag: 'boolean', xs: 'list', table: 'table', key: 'scalar' }
const resolve = (segments: readonly string[]) => ({
  path: segments.map((segment) => segment.replaceAll('-', '_')),
  expectation: kinds[segments.at(-1) ?? ''] ?? ('unknown' as const),
})
const steps = (...argv: string[]) => parseArguments(argv, resolve).steps
const faults = (...argv: string[]) => parseArguments(argv, resolve).problems.map((problem) => [problem.code, problem.message])

describe('parseArguments', () => {
  it('takes files at the root and below a key, in order', () => {
    expect(steps('@', 'a.toml', '@', 'b.toml', '--table', '@', 'c.toml', '--table', '@d.toml')).toMatchObject([
      { kind: 'file', at: [], file: 'a.toml' },
      { kind: 'file', at: [], file: 'b.toml' },
      { kind: 'file', at: ['table'], file: 'c.toml' },
      { kind: 'file', at: ['table'], file: 'd.toml' },
    ])
  })

  it('gives a boolean no word but true and false, so a file may follow it', () => {
    expect(steps('--flag', '@', 'a.toml', '--flag', 'false', '--no-flag')).toMatchObject([
      { at: ['flag'], words: [], negated: false },
      { kind: 'file', file: 'a.toml' },
      { at: ['flag'], words: ['false'] },
      { at: ['flag'], words: [], negated: true },
    ])
  })

  it('gives a list every word up to the next flag or file, and a scalar one', () => {
    expect(steps('--xs', 'a', '-1', 'c', '@', 'f.toml', '--key', '-1')).toMatchObject([
      { at: ['xs'], words: ['a', '-1', 'c'] },
      { kind: 'file', file: 'f.toml' },
      { at: ['key'], words: ['-1'] },
    ])
    expect(faults('--key', 'a', 'b')).toEqual([['USAGE_INVALID', '`b` belongs to no flag']])
  })

  it('takes what follows = as it is', () => {
    expect(steps('--a-b.key=--x', '--key=', '--key=a=b', '--table=@x')).toMatchObject([
      { at: ['a_b', 'key'], words: ['--x'] },
      { words: [''] },
      { words: ['a=b'] },
      { kind: 'set', words: ['@x'] },
    ])
  })

  it.each([
    [['@'], '`@` needs a file after it'],
    [['@', '--key', 'x'], '`@` needs a file after it'],
    [['@a.toml'], '`@a.toml` is not understood'],
    [['a.toml'], '`a.toml` belongs to no flag'],
    [['--a..b', 'x'], '`--a..b` is not the name of a key'],
    [['-x'], '`-x` belongs to no flag'],
  ])('refuses %j', (argv, message) => {
    const [first] = parseArguments(argv, resolve).problems
    expect(first).toMatchObject({ code: 'USAGE_INVALID', message })
    expect(first?.hint).toBeTruthy()
  })
})
