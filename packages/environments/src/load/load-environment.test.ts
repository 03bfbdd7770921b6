import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadEnvironment } from './load-environment.ts'

const fixtures = fileURLToPath(new URL('../__fixtures__/', import.meta.url))
const load = (id: string, args = {}, workingDirectory = fixtures) => loadEnvironment({ id, args, settings: {}, workingDirectory })

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-load-'))
  const install = (name: string, manifest: object, files: Record<string, string>) => {
    const target = join(folder, 'node_modules', name)
    mkdirSync(target, { recursive: true })
    writeFileSync(join(target, 'package.json'), JSON.stringify({ name, version: '1.2.0', type: 'module', ...manifest }))
    for (const [file, text] of Object.entries(files)) writeFileSync(join(target, file), text)
  }
  // An installed package has its own copy of the SDK: it is known by its brand.
  const entry = `export default {
    [Symbol.for('@trilithon/environment@1')]: true,
    name: 'group',
    args: { safeParse: (data) => ({ success: true, data }) },
    scoring: 'group',
    dataset: () => ({ size: { train: null, eval: null }, task: () => ({}) }),
    episode: async () => 1,
    score: () => [1],
  }`
  install('@acme/group', { exports: { '.': { types: './x.d.ts', import: './main.js' } } }, { 'main.js': entry })
  install('old-group', { main: 'lib.js' }, { 'lib.js': entry })
  install('unbuilt', { exports: './dist/index.js' }, {})
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('an environment is found', () => {
  it.each(['reverse-text', 'alphabet-sort', 'reverse-text@0.1.0', './group-environment.mjs', join(fixtures, 'group-environment.mjs')])(
    'as %s',
    async (id) => {
      const { name, definition } = await load(id)
      expect(name).toBe(id.includes('group') ? 'group-environment' : id.replace('@0.1.0', ''))
      expect(definition.name).toBe(id.includes('group') ? 'group' : name)
    },
  )

  it.each(['@acme/group', '@acme/group@1.2.0', '@acme/group@latest', 'old-group'])('as an installed package %s', async (id) => {
    expect((await load(id, {}, folder)).definition.scoring).toBe('group')
  })
})

describe('an environment is refused', () => {
  it.each([
    ['a file that is missing', './missing.mjs', {}, /there is no file/],
    ['a package that is missing', 'no-such-environment@1.2', {}, /no package no-such-environment/],
    ['TypeScript', './bad/typed.ts', {}, /no TypeScript/],
    ['a syntax error', './bad/syntax.mjs', {}, /failed while it was imported/],
    ['an import that fails', './bad/import.mjs', {}, /failed while it was imported.*no-such-package/],
    ['no definition', './bad/plain.mjs', {}, /not made by defineEnvironment/],
    ['parts that are missing', './bad/parts.mjs', {}, /`name` .* `args` .* `scoring` .* `dataset` .* `episode` .* `score`/],
    ['a dataset that throws', './bad/dataset.mjs', {}, /no disk/],
    ['a dataset without a size', './bad/size.mjs', {}, /no `size`/],
    ['arguments that it does not know', 'reverse-text', { min_length: 0, letters: 'a' }, /args.min_length: .*; args: .*letters/],
    ['arguments that do not fit together', 'reverse-text', { min_length: 9 }, /args.max_length: must not be below min_length/],
    ['letters that are too few', 'alphabet-sort', { alphabet: 'ab' }, /args.alphabet: has too few words/],
  ])('%s', async (_, id, args, message) => {
    await expect(load(id, args)).rejects.toMatchObject({
      code: 'ENVIRONMENT_INVALID',
      path: 'env.id',
      message: expect.stringMatching(message),
    })
  })

  it.each([
    ['another version', '@acme/group@2.0.0', /version 1.2.0 is installed/],
    ['a package without its files', 'unbuilt', /entry .\/dist\/index.js is missing/],
  ])('%s', async (_, id, message) => {
    await expect(load(id, {}, folder)).rejects.toMatchObject({ code: 'ENVIRONMENT_INVALID', message: expect.stringMatching(message) })
  })
})
