import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { compose } from '../compose/compose.ts'
import type { Composition } from '../compose/composition.ts'
import type { RootName } from '../compose/root-definitions.ts'
import { resolvedToml, writeResolved } from '../report/write-resolved.ts'
import { placeOf, project, sharedIsHere, shippedFiles, shippedFolder } from './__fixtures__/shipped-files.ts'

const parts: readonly RootName[] = ['rl', 'trainer', 'orchestrator', 'inference', 'sft']
const digestFile = new URL('./__fixtures__/resolved-digests.json', import.meta.url)
type Digests = Record<string, Record<string, string>>
const committed: Digests = existsSync(digestFile) ? JSON.parse(readFileSync(digestFile, 'utf8')) : {}
const found: Digests = {}

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-'))
})
afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
  if (process.env.UPDATE_DIGESTS === '1') writeFileSync(digestFile, `${JSON.stringify(found, null, 2)}\n`)
})

const composed = (root: RootName, files: readonly string[], workingDirectory = shippedFolder): Promise<Composition> =>
  compose({ root, argv: files.flatMap((file) => ['@', file]), workingDirectory, environment: {} })

/** A resolved configuration, written and read back, resolves to itself: as TOML for each role, and as JSON for the launcher. */
async function expectRoundTrip(composition: Composition): Promise<void> {
  for (const root of parts) {
    const value = composition.resolved[root]
    // Without inference the launcher's own file has a null where no file can have one.
    if (value === undefined || value.inference === null) continue
    const files = { toml: root === 'rl' ? undefined : resolvedToml(composition, root), json: JSON.stringify(value) }
    for (const [format, text] of Object.entries(files)) {
      if (text === undefined) continue
      const file = join(folder, `${root}.${format}`)
      writeFileSync(file, text)
      const again = await composed(root, [file])
      expect({ ...again.resolved[root], dry_run: value.dry_run }).toEqual({ ...value, dry_run: value.dry_run })
      if (format === 'toml') expect(resolvedToml(again, root)).toBe(text)
    }
  }
}

/** One digest for each role's file, as the dry run would write it. */
function digestsOf(composition: Composition): Record<string, string> {
  const roots = composition.mounts.filter(({ role }) => role !== undefined).map(({ root }) => root.name)
  const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)
  return Object.fromEntries(roots.map((root) => [root, digest(resolvedToml(composition, root))]))
}

test.skipIf(!sharedIsHere)('all 74 files of prime-rl are there (skipped only without ../shared)', () => {
  expect(shippedFiles).toHaveLength(74)
  if (process.env.UPDATE_DIGESTS !== '1') expect(Object.keys(committed).sort()).toEqual(shippedFiles)
})

test.each(shippedFiles)('%s loads, is stable, and resolves to what is committed', async (file) => {
  const { root, files } = placeOf(file)
  const composition = await composed(root, files)
  await expectRoundTrip(composition)
  found[file] = digestsOf(composition)
  if (process.env.UPDATE_DIGESTS === '1') return
  expect(found[file], 'where the change is meant, run `pnpm run regenerate` in packages/runtime').toEqual(committed[file])
})

test('a dry run writes what is digested, one file for each role', async () => {
  const composition = await composed('rl', ['examples/reverse-text/rl.toml'], project)
  const written = writeResolved({ ...composition, run: { ...composition.run, workingDirectory: folder } })
  expect(written).toEqual(['trainer', 'orchestrator', 'inference'].map((name) => `outputs/reverse-text-rl/configs/${name}.toml`))
  for (const name of ['trainer', 'orchestrator', 'inference'])
    expect(readFileSync(join(folder, `outputs/reverse-text-rl/configs/${name}.toml`), 'utf8')).toBe(resolvedToml(composition, name))
})

test.each([
  ['rl', 'examples/reverse-text/rl.toml'],
  ['sft', 'examples/reverse-text/sft.toml'],
  ['rl', 'examples/alphabet-sort/rl.toml'],
  ['sft', 'examples/alphabet-sort/sft.toml'],
] as const)('%s: %s loads and needs nothing that is missing here', async (root, file) => {
  const composition = await composed(root, [file], project)
  expect(composition.unavailable.map(({ path }) => path)).toEqual([])
  expect(composition.ignored.map(({ path }) => path)).toEqual([])
  expect(composition.overruled.map(({ path }) => path)).toEqual([])
  await expectRoundTrip(composition)
  expect(composition.files).toEqual([file])
})
