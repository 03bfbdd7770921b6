// @ts-check
/**
 * New plugins in a workspace, by the command line and by the generator for nx: formatted, on their floor, they compile, pass `describePlugin` and fail the
 * contract of their seam. Outside of a workspace the same is tried by `test-third-party.mjs`. Needs a built clone.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkFloors } from '../check-floors.mjs'
import { projectRoot } from '../lib/workspace.mjs'
import generatePlugin from '../nx-plugin/generate-plugin.mjs'

const seams = ['router', 'kv-store', 'parallelism', 'precision', 'replay']

let root = ''
const bin = (/** @type {string} */ name) => join(projectRoot, 'node_modules', '.bin', name)

/** @param {string} command @param {string[]} args */
function run(command, ...args) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' } })
  return { status, output: stdout + stderr }
}

/** A workspace as a clone has it, with what its packages import in one `node_modules`. */
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'trilithon-workspace-')))
  for (const file of ['package.json', 'pnpm-lock.yaml', 'pnpm-workspace.yaml', 'tsconfig.base.json', 'vitest.shared.ts'])
    cpSync(join(projectRoot, file), join(root, file))
  const { vcs: _vcs, ...biome } = JSON.parse(readFileSync(join(projectRoot, 'biome.json'), 'utf8'))
  writeFileSync(join(root, 'biome.json'), JSON.stringify(biome))
  const link = (/** @type {string} */ target, /** @type {string} */ path) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    symlinkSync(join(projectRoot, target), join(root, path))
  }
  for (const name of ['core', 'testing']) {
    cpSync(join(projectRoot, 'packages', name, 'package.json'), join(root, 'packages', name, 'package.json'))
    link(`packages/${name}`, `node_modules/@trilithon/${name}`)
  }
  link('packages/core/node_modules/zod', 'node_modules/zod')
  for (const name of ['@types/node', 'vitest', 'vite']) link(`node_modules/${name}`, `node_modules/${name}`)
  for (const seam of seams) {
    const { status, output } = run(
      process.execPath,
      join(projectRoot, 'packages/cli/dist/main.js'),
      'new',
      'plugin',
      `new-${seam}`,
      '--seam',
      seam,
    )
    expect({ status, output }).toEqual({ status: 0, output: expect.stringContaining(`./trilithon test plugins/new-${seam}`) })
  }
}, 60_000)
afterAll(() => rmSync(root, { recursive: true, force: true }))

test('are formatted, linted and on their floor', () => {
  const { status, output } = run(bin('biome'), 'check', '--error-on-warnings', 'plugins', '.changeset')
  expect(status, output).toBe(0)
  expect(checkFloors(root).filter(({ file }) => file.startsWith('plugins/'))).toEqual([])
})

test('compile', () => {
  const all = { extends: './tsconfig.base.json', compilerOptions: { noEmit: true }, include: ['plugins/*/src'] }
  writeFileSync(join(root, 'tsconfig.json'), JSON.stringify(all))
  for (const project of ['.', 'plugins/new-router/tsconfig.json', 'plugins/new-router/tsconfig.build.json'])
    expect(run(bin('tsc'), '-p', project)).toEqual({ status: 0, output: '' })
})

test('pass describePlugin, and fail the contract of their seam where it has a suite', { timeout: 60_000 }, () => {
  const config = `import { mergeConfig } from 'vitest/config'\nimport shared from './vitest.shared.ts'\nexport default mergeConfig(shared, { test: { include: ['plugins/*/src/*.test.ts'] } })\n`
  writeFileSync(join(root, 'vitest.config.mjs'), config)
  const { output } = run(bin('vitest'), 'run')
  const report = join(root, 'test-results.json')
  expect(existsSync(report), output).toBe(true)
  /** @type {{ name: string, assertionResults: { ancestorTitles: string[], title: string, status: string }[] }[]} */
  const files = JSON.parse(readFileSync(report, 'utf8')).testResults
  const titles = (/** @type {string} */ seam, /** @type {string} */ wanted) =>
    files
      .filter(({ name }) => name.startsWith(join(root, 'plugins', `new-${seam}`)))
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ status }) => status === wanted)
      .map(({ ancestorTitles, title }) => (ancestorTitles[0]?.startsWith('plugin ') ? 'describePlugin' : (title.split(' ')[0] ?? '')))
  const sentences = (/** @type {string} */ seam, /** @type {string} */ wanted) => [...new Set(titles(seam, wanted))]

  for (const seam of seams) expect(titles(seam, 'passed').filter((title) => title === 'describePlugin').length).toBeGreaterThan(8)
  expect(sentences('router', 'failed')).toEqual(['R1', 'R2', 'R3', 'R4', 'R5', 'R6', 'R7', 'R8', 'R9', 'R10', 'R11', 'R14'])
  expect(sentences('kv-store', 'failed')).toEqual(['K1', 'K2', 'K3', 'K4', 'K6', 'K7', 'K8', 'K9', 'K10', 'K11', 'K12', 'K13'])
  for (const [seam, first] of [
    ['parallelism', 'P1'],
    ['precision', 'Q1'],
    ['replay', 'Y1'],
  ])
    expect({ failed: titles(String(seam), 'failed'), skipped: titles(String(seam), 'skipped') }).toEqual({ failed: [], skipped: [first] })
})

test.for(seams)('the generator for nx writes the same: %s', (seam) => {
  /** @type {Map<string, string>} */
  const written = new Map()
  const tree = { exists: () => false, write: (/** @type {string} */ path, /** @type {string} */ text) => written.set(path, text) }
  generatePlugin(/** @type {any} */ (tree), { name: `new-${seam}`, seam })
  expect(written.size).toBe(8)
  for (const [path, text] of written) expect(readFileSync(join(root, path), 'utf8')).toBe(text)
})

test('the generator for nx says what to do next', () => {
  const tree = { exists: () => true, write: () => undefined }
  expect(() => generatePlugin(/** @type {any} */ (tree), { name: 'new-router', seam: 'router' })).toThrow(
    'plugins/new-router exists already. Choose another name, or remove it.',
  )
})

test('can be found by the runtime: pnpm links what is ours at the root', () => {
  expect(realpathSync(join(projectRoot, 'node_modules/@trilithon/core'))).toBe(join(projectRoot, 'packages/core'))
})
