import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { environmentReadKeys } from '@trilithon/environments/configuration'
import { inferenceReadKeys } from '@trilithon/inference/configuration'
import { orchestratorReadKeys } from '@trilithon/orchestrator/configuration'
import { trainerReadKeys } from '@trilithon/trainer/configuration'
import { describe, expect, it, test } from 'vitest'
import { compose } from '../compose/compose.ts'
import { findRoot, rootNames } from '../compose/root-definitions.ts'
import { objectKeys, shapeOf } from '../config/shape.ts'
import { missingRoles } from '../report/missing-roles.ts'
import { project } from './__fixtures__/shipped-files.ts'
import { rootKeys, type WalkedKey } from './__fixtures__/walk-keys.ts'
import { launcherReadKeys } from './read-keys.ts'

const readKeys: Readonly<Record<string, readonly string[]>> = {
  ...launcherReadKeys,
  ...trainerReadKeys,
  ...orchestratorReadKeys,
  ...inferenceReadKeys,
  ...environmentReadKeys,
}

/** Read by the composition itself, of every root. */
const composed = ['plugins', 'numerics_profile', 'dry_run']

/** Sources in which the code of a root may read a key, besides its own package. */
const readers: Readonly<Record<string, readonly string[]>> = {
  rl: ['runtime'],
  sft: ['trainer', 'renderers', 'runtime'],
  trainer: ['trainer', 'runtime'],
  orchestrator: ['orchestrator', 'renderers', 'runtime'],
  inference: ['inference'],
  'env-server': ['environments', 'runtime'],
}

/** Roots, or parts of `rl`, whose process can be started today, with every root that can start. */
function startable(): { root: ReturnType<typeof findRoot>['mounts'][number]['root']; at: string }[] {
  return rootNames.flatMap((name) => {
    const { mounts } = findRoot(name)
    const missing = missingRoles(
      name,
      mounts.flatMap(({ role }) => role ?? []),
    )
    const starts = mounts.filter(({ role }) => (role === undefined ? missing.length === 0 : !missing.includes(role)))
    return starts.map(({ root }) => ({ root, at: name }))
  })
}

/** Said of a key by a notice wherever it is written: that it has no effect. */
const noticed: Readonly<Record<string, readonly string[]>> = {
  sft: ['renderer[default].tool_parser', 'renderer[default].reasoning_parser'],
  orchestrator: ['renderer[default].tool_parser', 'renderer[default].reasoning_parser'],
}

/** Keys of a root that nobody reads, refuses or reports. */
function silent(rootName: string, keys: readonly WalkedKey[], read: readonly string[]): string[] {
  const known = new Set([...read, ...composed, ...(noticed[rootName] ?? [])])
  return keys
    .filter(({ schema, isTable }) => !isTable && Object.keys(objectKeys(shapeOf(schema).core) ?? { key: true }).length > 0)
    .filter(({ unavailable, externalOnly }) => unavailable === undefined && externalOnly === undefined)
    .map(({ path }) => path.slice(rootName.length + 1))
    .filter((path) => !known.has(path))
}

// Keys that packages claim are the business of `claimed-keys.test.ts`; a role that is not built refuses its whole start.
describe('no key is parsed and ignored in silence', () => {
  test.each(startable().map(({ root, at }) => [root.name, at, root] as const))('a start of %s under %s', (name, _, root) => {
    expect(silent(name, rootKeys(root), readKeys[name] ?? [])).toEqual([])
  })

  it('and the test would find one: a role that is built with nothing read, a key that is left out', () => {
    const trainer = findRoot('trainer').mounts[0]?.root
    const sft = findRoot('sft').mounts[0]?.root
    if (trainer === undefined || sft === undefined) throw new Error('roots are missing')
    expect(silent('trainer', rootKeys(trainer), []).length).toBeGreaterThan(30)
    expect(
      silent(
        'sft',
        rootKeys(sft),
        trainerReadKeys.sft.filter((key) => key !== 'model.seq_len'),
      ),
    ).toEqual(['model.seq_len'])
  })
})

describe('the list of keys that are read', () => {
  const listed = Object.entries(readKeys).flatMap(([root, keys]) => keys.map((key) => [root, key] as const))

  it('names each key once', () => {
    expect(new Set(listed.map(String)).size).toBe(listed.length)
  })

  it('names keys that exist and that no metadata calls unread', () => {
    for (const [name, key] of listed) {
      const root = rootNames.flatMap((one) => findRoot(one).mounts).find((mount) => mount.root.name === name)?.root
      const found = root === undefined ? undefined : rootKeys(root).find(({ path }) => path === `${name}.${key}`)
      expect(found, `${name}.${key}`).toBeDefined()
      if (!composed.includes(key))
        expect([found?.path, found?.unavailable, found?.externalOnly]).toEqual([found?.path, undefined, undefined])
    }
  })

  it('names keys whose name stands in the code that is said to read them', () => {
    const missing = listed.filter(([root, key]) => !new RegExp(`\\b${key.split('.').at(-1)}\\b`).test(sourcesOf(root)))
    expect(missing).toEqual([])
  })

  const cache = new Map<string, string>()
  /** Everything that a package ships but the tables of its configuration, which only declare keys. */
  function sourcesOf(root: string): string {
    const known = cache.get(root)
    if (known !== undefined) return known
    const text = (readers[root] ?? [])
      .flatMap((name) => {
        const folder = join(project, 'packages', name, 'src')
        const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
        return files
          .filter(
            (file) =>
              file.endsWith('.ts') && !file.endsWith('.test.ts') && !/configuration\/(?!.*(rules|derive))|__fixtures__|known\//.test(file),
          )
          .map((file) => readFileSync(join(folder, file), 'utf8'))
      })
      .join('\n')
    cache.set(root, text)
    return text
  }
})

test('what is said to be unused is said by the composition', async () => {
  for (const [name, keys] of Object.entries(noticed))
    for (const key of keys) {
      const [table = '', leaf = ''] = key.split('.')
      const [, path, variant] = /^(\w+)\[(\w+)\]$/.exec(table) ?? []
      const argv = [`--${path}.name=${variant}`, `--${path}.${leaf}=think`]
      const { overruled } = await compose({ root: name as 'sft', argv, workingDirectory: project, environment: {} })
      expect(overruled).toMatchObject([{ path: `${path}.${leaf}`, reason: expect.any(String) }])
    }
})
