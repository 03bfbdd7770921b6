import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { compose } from '../src/compose/compose.ts'
import { lookupSchemas } from '../src/compose/lookup-schemas.ts'
import { findRoot, type RootName, rootNames } from '../src/compose/root-definitions.ts'
import { gather } from '../src/config/gather.ts'
import { toPlain } from '../src/config/tree.ts'
import { builtInPlugins } from '../src/plugins/built-in.ts'
import { knownPlugins } from '../src/plugins/known-plugins.ts'
import { jsonSchemaOf } from '../src/report/json-schema.ts'
import { resolvedToml } from '../src/report/write-resolved.ts'
import { placeOf, project, shippedFiles, shippedFolder } from '../src/roots/__fixtures__/shipped-files.ts'
import { badFiles, badFolder } from './bad-corpus.ts'

// Another validator than the one that judges configurations.
const ajv = new Ajv2020({ strict: false, allErrors: true })
const validators = Object.fromEntries(rootNames.map((name) => [name, ajv.compile(jsonSchemaOf(name))]))

/** Composed files as JSON, before anything of ours has judged or moved a key. */
function written(root: RootName, argv: readonly string[], folder: string): unknown {
  const lookup = lookupSchemas(findRoot(root).mounts, builtInPlugins, knownPlugins())
  const { tree, problems } = gather(argv, folder, lookup)
  expect(problems).toEqual([])
  // A number beyond 2^53 stays a number for JSON Schema.
  return JSON.parse(JSON.stringify(toPlain(tree), (_, value) => (typeof value === 'bigint' ? Number(value) : value)))
}

function faults(root: RootName, value: unknown): string[] {
  const validate = validators[root]
  if (validate === undefined || validate(value)) return []
  return (validate.errors ?? []).map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`)
}

describe('JSON Schema', () => {
  it.each(rootNames)('of %s is JSON Schema, and accepts an empty file', (name) => {
    expect(ajv.validateSchema(jsonSchemaOf(name))).toBe(true)
    expect(faults(name, {})).toEqual([])
  })

  it.each(shippedFiles)('accepts %s', (file) => {
    const { root, files } = placeOf(file)
    expect(
      faults(
        root,
        written(
          root,
          files.flatMap((one) => ['@', one]),
          shippedFolder,
        ),
      ),
    ).toEqual([])
  })

  it.each([
    ['rl', 'reverse-text'],
    ['sft', 'reverse-text'],
    ['rl', 'alphabet-sort'],
    ['sft', 'alphabet-sort'],
  ] as const)('accepts %s.toml of the example %s', (root, example) => {
    expect(faults(root, written(root, ['@', `examples/${example}/${root}.toml`], project))).toEqual([])
  })

  const shown = shippedFiles.filter((file) => /glm5_llmd|Intellect|opd_lora|elastic|reverse_text\/(rl|sft)|nemotron_debug/.test(file))
  it.each(shown)('accepts what a dry run writes for %s, explicit nulls included', async (file) => {
    const { root, files } = placeOf(file)
    const argv = files.flatMap((one) => ['@', one])
    const composition = await compose({ root, argv, workingDirectory: shippedFolder, environment: {} })
    const folder = mkdtempSync(join(tmpdir(), 'trilithon-'))
    for (const { root: part, role } of composition.mounts) {
      if (role === undefined) continue
      writeFileSync(join(folder, `${part.name}.toml`), resolvedToml(composition, part.name))
      expect(faults(part.name as RootName, written(part.name as RootName, ['@', `${part.name}.toml`], folder))).toEqual([])
    }
    rmSync(folder, { recursive: true })
  })

  // A schema of single files cannot say that something is missing from all of them together; JSON has no dates.
  const beyondSchemas = /required-key|no-orchestrator|date-|environment-variable|key-named-proto|in-free-table/
  const structural = badFiles().filter(
    ({ file, code, argv }) =>
      ['CONFIG_VALUE_INVALID', 'CONFIG_KEY_UNKNOWN'].includes(code) &&
      !/^(files|flags)\//.test(file) &&
      !beyondSchemas.test(file) &&
      argv.length === 2,
  )

  it('is put to the test by the structural members of the corpus of bad configurations', () => {
    expect(structural.length).toBeGreaterThan(40)
  })

  it.each(structural.map((bad) => [bad.file, bad] as const))('rejects %s', (_, { root, argv }) => {
    expect(faults(root, written(root, argv, badFolder))).not.toEqual([])
  })
})
