import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TrilithonError } from '@trilithon/core'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { composeRoot } from '../src/compose/compose.ts'
import type { Composition } from '../src/compose/composition.ts'
import { findRoot, type RootDefinition, type RootName, rootNames } from '../src/compose/root-definitions.ts'
import { resolvedToml } from '../src/report/write-resolved.ts'
import { arbitraryRoot } from './arbitrary-configuration.ts'
import { Folder } from './compose-in-folder.ts'

const folder = new Folder()
afterAll(() => folder.remove())

type Plain = Record<string, unknown>

/** A root with its schema, claims and slots, and without rules: what is written is what is resolved. */
function bare(name: RootName): RootDefinition {
  const definition = findRoot(name)
  const mounts = definition.mounts.map((mount) => {
    const { derive: _, rules: __, notices: ___, ...root } = mount.root
    return { ...mount, root }
  })
  return { ...definition, mounts, sharedKeys: [] }
}

const compose = (definition: RootDefinition, argv: readonly string[]) =>
  composeRoot(definition, { argv, workingDirectory: folder.path, environment: {} })

/** A file with these values: what a composition that resolves to them would write. */
function fileOf(definition: RootDefinition, value: Plain): string {
  const composition = { resolved: { [definition.name]: value }, mounts: definition.mounts, plugins: [] } as unknown as Composition
  const file = join(folder.path, `${definition.name}.toml`)
  writeFileSync(file, resolvedToml(composition, definition.name))
  return file
}

/** Complete configurations of a root and of the roots that lie in it. */
function configurationsOf(definition: RootDefinition): fc.Arbitrary<Plain> {
  const parts = definition.mounts.map((mount) => arbitraryRoot(mount))
  return fc.tuple(...parts).map((values) => {
    const config: Plain = {}
    for (const [index, value] of values.entries()) {
      const at = definition.mounts[index]?.at[0]
      Object.assign(config, at === undefined ? value : { [at]: value })
    }
    return config
  })
}

const withoutDryRun = ({ dry_run: _, ...config }: Plain): Plain => config

describe('a resolved file, read back, is the same configuration', () => {
  it.each(rootNames)('for every value of the whole schema of %s (known fault A1)', async (name) => {
    const definition = bare(name)
    await fc.assert(
      fc.asyncProperty(configurationsOf(definition), async (value) => {
        const { resolved } = await compose(definition, ['@', fileOf(definition, value)])
        expect(withoutDryRun(resolved[name] ?? {})).toEqual(withoutDryRun(value))
      }),
      { numRuns: name === 'rl' ? 15 : 30, endOnFailure: true },
    )
  })

  const bases: Readonly<Record<RootName, Plain>> = {
    rl: { trainer: {}, orchestrator: { renderer: { name: 'default' } }, inference: {} },
    sft: {},
    trainer: {},
    orchestrator: { renderer: { name: 'default' } },
    inference: {},
    'env-server': {},
  }

  /** Some of the keys of a complete configuration, over the base of its root. */
  function someKeys(name: RootName): fc.Arbitrary<Plain> {
    return configurationsOf(findRoot(name)).chain((whole) => {
      const base = bases[name]
      const inner = Object.keys(base).filter((key) => name === 'rl' && typeof whole[key] === 'object')
      const picked = (from: Plain) => fc.subarray(Object.keys(from), { minLength: 1, maxLength: 2 }).map((keys) => pick(from, keys))
      const outer = picked(Object.fromEntries(Object.entries(whole).filter(([key]) => !inner.includes(key))))
      return fc
        .tuple(outer, ...inner.map((key) => picked(whole[key] as Plain).map((part) => ({ [key]: { ...(base[key] as Plain), ...part } }))))
        .map((parts) => Object.assign({ ...base }, ...parts))
    })
  }

  it.each(rootNames)('for what the rules of %s accept; what they refuse is no fault of a value', async (name) => {
    const definition = findRoot(name)
    let sound = 0
    await fc.assert(
      fc.asyncProperty(someKeys(name), async (value) => {
        const composition = await compose(definition, ['@', fileOf(bare(name), value)]).catch((error: unknown) => {
          if (!TrilithonError.is(error)) throw error
          const problems = error.problems.length > 0 ? error.problems : [error]
          for (const { code } of problems) expect(['CONFIG_VALUE_CONFLICT', 'PLUGIN_CHECK_FAILED', 'PLUGIN_NOT_FOUND']).toContain(code)
        })
        if (composition === undefined) return
        sound++
        for (const { root, role } of composition.mounts) {
          if (role === undefined) continue
          const alone = findRoot(root.name as RootName)
          const file = join(folder.path, `again-${root.name}.toml`)
          writeFileSync(file, resolvedToml(composition, root.name))
          const { resolved } = await compose(alone, ['@', file])
          expect(withoutDryRun(resolved[root.name] ?? {})).toEqual(withoutDryRun(composition.resolved[root.name] ?? {}))
        }
      }),
      { numRuns: 40, endOnFailure: true },
    )
    expect(sound, 'the generator makes too little that is sound').toBeGreaterThan(3)
  })
})

it('the text "None" is refused where a resolved file would turn it into null', () => {
  expect(() => fileOf(bare('trainer'), { output_dir: 'None' })).toThrow(
    expect.objectContaining({ code: 'CONFIG_VALUE_INVALID', path: 'output_dir' }),
  )
})

function pick(from: Plain, keys: readonly string[]): Plain {
  return Object.fromEntries(keys.map((key) => [key, from[key]]))
}
