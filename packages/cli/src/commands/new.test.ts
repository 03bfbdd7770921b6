import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runCommandLine } from '../run-command-line.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-new-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

async function run(argv: readonly string[], workingDirectory = folder) {
  const written = { out: '', err: '' }
  const status = await runCommandLine(['new', 'plugin', ...argv], {
    workingDirectory,
    environment: {},
    stdout: { write: (text: string) => (written.out += text) },
    stderr: { write: (text: string) => (written.err += text) },
  })
  return { status, ...written }
}

it('writes a package of its own and says what to do next', async () => {
  const { status, out, err } = await run(['@acme/my-router', '--seam', 'router'])
  expect([status, err]).toEqual([0, ''])
  expect(out).toMatch(/^wrote my-router\/package\.json$/m)
  expect(out).toMatch(/\nNext:\n {2}cd my-router\n {2}npm install\n {2}npm test\n$/)
  expect(JSON.parse(readFileSync(join(folder, 'my-router/package.json'), 'utf8')).name).toBe('@acme/my-router')
})

it('writes into plugins/ anywhere inside of the workspace', async () => {
  writeFileSync(join(folder, 'pnpm-workspace.yaml'), '')
  mkdirSync(join(folder, 'packages/core'), { recursive: true })
  writeFileSync(join(folder, 'packages/core/package.json'), '{ "name": "@trilithon/core" }')
  const { status, out } = await run(['my-store', '--seam', 'kv-store'], join(folder, 'packages', 'core'))
  expect(status).toBe(0)
  expect(out).toContain(`Next, in ${folder}:\n  .tools/node_modules/.bin/pnpm install\n  ./trilithon test plugins/my-store\n`)
  expect(JSON.parse(readFileSync(join(folder, 'plugins/my-store/package.json'), 'utf8')).name).toBe('@trilithon/my-store')
})

it('changes nothing that exists', async () => {
  mkdirSync(join(folder, 'my-router'))
  const { status, out, err } = await run(['my-router', '--seam', 'router'])
  expect([status, out]).toEqual([2, ''])
  expect(err).toMatch(/^USAGE_INVALID {2}my-router\n {2}my-router exists already\n/)
})

it('says when it cannot write', async () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  const { status, out, err } = await run(['my-router', '--seam', 'router'], file)
  expect([status, out]).toEqual([2, ''])
  expect(err).toMatch(/^OUTPUT_UNUSABLE /)
})

it.each([
  [['my-router'], /required option '--seam <seam>' not specified/],
  [['--seam', 'router'], /missing required argument 'name'/],
  [['my-router', '--seam'], /argument missing/],
  [['my-router', '--seam', 'nothing'], /there is no seam "nothing"/],
  [['my-router', '--seam', 'router', '--sea'], /unknown option '--sea'/],
  [['a', 'b', '--seam', 'router'], /too many arguments/],
])('%j is a usage error', async (argv, message) => {
  const { status, out, err } = await run(argv)
  expect([status, out]).toEqual([2, ''])
  expect(err).toMatch(message)
})

it('explains itself', async () => {
  const { status, out } = await run(['--help'])
  expect(status).toBe(0)
  expect(out).toContain('parallelism, precision, kv-store, router, replay')
})
