import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compose } from '../compose/compose.ts'
import type { Composition } from '../compose/composition.ts'
import type { RootName } from '../compose/root-definitions.ts'

const project = fileURLToPath(new URL('../../../..', import.meta.url))
const shipped = join(project, '../shared/prime-rl-0.6.0-configs')
const parts: readonly RootName[] = ['rl', 'trainer', 'orchestrator', 'inference', 'sft']

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const composed = (root: RootName, files: readonly string[]): Promise<Composition> =>
  compose({ root, argv: files.flatMap((file) => ['@', file]), workingDirectory: project, environment: {} })

/** The root that a file of prime-rl belongs to; an overlay stands on top of its base. */
function placeOf(file: string): { root: RootName; files: string[] } {
  const overlay = /slurm_(rl|sft)\.toml$/.exec(file)
  if (overlay !== null) return { root: overlay[1] as RootName, files: [file.replace('slurm_', ''), file] }
  if (/(inference|infer)\.toml$/.test(file)) return { root: 'inference', files: [file] }
  if (/(orchestrator|orch)\.toml$/.test(file)) return { root: 'orchestrator', files: [file] }
  if (/trainer\.toml$|debug\/rl\/train\.toml$/.test(file)) return { root: 'trainer', files: [file] }
  if (/\/sft\.toml$|reverse_text_sft|debug\/(moe\/)?sft\//.test(file) && !file.includes('training_modes'))
    return { root: 'sft', files: [file] }
  return { root: 'rl', files: [file] }
}

/** A resolved configuration, written and read back, resolves to itself, and says nothing new. */
async function expectRoundTrip(composition: Composition): Promise<void> {
  for (const root of parts) {
    const value = composition.resolved[root]
    // Without inference the launcher's own file has a null where no file can have one.
    if (value === undefined || value.inference === null) continue
    const file = join(folder, `${root}.json`)
    writeFileSync(file, JSON.stringify(value))
    const again = await composed(root, [file])
    expect(again.resolved[root]).toEqual(value)
  }
}

const files = existsSync(shipped)
  ? readdirSync(shipped, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.toml'))
  : []

test.skipIf(files.length === 0)('all 74 files of prime-rl are there (skipped without ../shared)', () => {
  expect(files).toHaveLength(74)
})

test.each(files.sort())('%s loads, and its resolved form is stable', async (file) => {
  const { root, files } = placeOf(join(shipped, file))
  await expectRoundTrip(await composed(root, files))
})

test.each(['rl', 'sft'] as const)('examples/reverse-text/%s.toml loads and needs nothing that is missing here', async (root) => {
  const composition = await composed(root, [join(project, `examples/reverse-text/${root}.toml`)])
  expect(composition.unavailable.map(({ path }) => path)).toEqual([])
  expect(composition.ignored.map(({ path }) => path)).toEqual([])
  await expectRoundTrip(composition)
  expect(relative(project, composition.files[0] ?? '')).toBe(`examples/reverse-text/${root}.toml`)
})
