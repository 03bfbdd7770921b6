import { describe, expect, it } from 'vitest'
import { fromPlain, type TableNode } from '../config/tree.ts'
import type { KnownPlugin } from '../plugins/known-plugins.ts'
import { ownerHintOf } from './owner-hint.ts'
import { parseAbsent } from './plugin-config.ts'
import { findRoot } from './root-definitions.ts'

const fast: KnownPlugin = {
  package: '@trilithon/fast',
  built: true,
  claims: [{ at: 'trainer.model', keys: { turbo: { schema: { type: 'integer', minimum: 1 }, inactive: 1, description: 'Speed.' } } }],
}
const [claim] = fast.claims
const { mounts } = findRoot('trainer')
const tree = (value: object) => fromPlain(value, { kind: 'file', file: 'a.toml', line: 3, column: 1 }) as TableNode

describe('a package that can be installed and is not', () => {
  it('stops a start as PLUGIN_NOT_FOUND, with the line that installs it', () => {
    if (claim === undefined) throw new Error('no claim')
    const { unavailable, problems } = parseAbsent({
      plugin: fast,
      claim,
      path: ['model'],
      node: tree({ turbo: 4 }),
      active: ['turbo'],
      unused: [],
    })
    expect(problems).toEqual([])
    expect(unavailable).toMatchObject([
      {
        code: 'PLUGIN_NOT_FOUND',
        path: 'model.turbo',
        value: 4,
        owner: '@trilithon/fast',
        hint: 'Run: pnpm add @trilithon/fast',
        source: { line: 3 },
      },
    ])
  })

  it('has its values checked all the same', () => {
    if (claim === undefined) throw new Error('no claim')
    const { problems } = parseAbsent({ plugin: fast, claim, path: ['model'], node: tree({ turbo: 0 }), active: ['turbo'], unused: [] })
    expect(problems).toMatchObject([{ code: 'CONFIG_VALUE_INVALID', path: 'model.turbo' }])
  })

  it('is named, with that line, where its key stands in a table that does not know it', () => {
    const hint = ownerHintOf(mounts, [fast])
    expect(hint('turbo')).toBe('`turbo` is a key of `model`, of @trilithon/fast. Run: pnpm add @trilithon/fast')
    expect(ownerHintOf(mounts, [{ ...fast, built: false }])('optim.turbo')).toBe(
      '`turbo` is a key of `model`, of @trilithon/fast (not built yet).',
    )
  })
})

describe('the table of a misplaced key', () => {
  const hint = ownerHintOf(findRoot('rl').mounts, [])
  it('is the one nearest to where it was written', () => {
    expect(hint('batch_size')).toBe('`batch_size` is a key of `orchestrator`.')
    expect(hint('trainer.lr')).toBe('`lr` is a key of `trainer.optim`.')
  })

  it('is not guessed for a name that many tables have, or none', () => {
    expect(hint('port')).toBeUndefined()
    expect(hint('constructor')).toBeUndefined()
  })
})
