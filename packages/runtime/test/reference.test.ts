import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { rootNames } from '../src/compose/root-definitions.ts'
import { referenceIndex, referencePage } from '../src/report/reference-page.ts'

const folder = fileURLToPath(new URL('../../../docs/reference', import.meta.url))
const remedy = 'run: ./trilithon build && node tools/generate-reference.mjs'

it.each(rootNames)('the page of %s is fresh', (name) => {
  expect(readFileSync(`${folder}/${name}.md`, 'utf8') === referencePage(name), remedy).toBe(true)
})

it('there is a page for each root, and a front page', () => {
  expect(readdirSync(folder).sort()).toEqual([...rootNames.map((name) => `${name}.md`), 'README.md'].sort())
  expect(readFileSync(`${folder}/README.md`, 'utf8') === referenceIndex(), remedy).toBe(true)
})

it('a page tells type, default, meaning, owner and availability of a key', () => {
  const trainer = referencePage('trainer')
  expect(trainer).toContain('| `lr` | number >= 0 | `0.000001` | Learning rate. | @trilithon/trainer | yes |')
  expect(trainer).toMatch(/\| `cp` \| integer >= 1 \| `1` \| .+ \| @trilithon\/cp \| no: not built yet \|/)
  expect(trainer).toMatch(/\| `attn` .+ \| for external backends\. The embedded trainer .+ \|/)
})
