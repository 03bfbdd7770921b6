// @ts-check
/**
 * Writes docs/reference: one page per root of the configuration, from the schemas of the built packages.
 *
 *   ./trilithon build && node tools/generate-reference.mjs
 *
 * A test of `packages/runtime` compares the pages with the schemas, so a page that is not fresh fails.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMain, projectRoot } from './lib/workspace.mjs'

async function main() {
  const { referenceIndex, referencePage, rootNames } = await import(join(projectRoot, 'packages/runtime/dist/index.js'))
  const folder = join(projectRoot, 'docs', 'reference')
  mkdirSync(folder, { recursive: true })
  for (const name of rootNames) writeFileSync(join(folder, `${name}.md`), referencePage(name))
  writeFileSync(join(folder, 'README.md'), referenceIndex())
  console.log(`${rootNames.length} pages in docs/reference`)
}

if (isMain(import.meta.url)) await main()
