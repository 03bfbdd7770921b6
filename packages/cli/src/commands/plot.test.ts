import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runCommandLine } from '../run-command-line.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-plot-'))
  for (const [name, reward] of [
    ['a', 0.5],
    ['b', 0.75],
  ] as const) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'metrics.jsonl'), `{"step":0,"reward/all/mean":0.25}\n{"step":1,"reward/all/mean":${reward}}\n`)
  }
})
afterEach(() => rmSync(folder, { recursive: true }))

async function run(...argv: readonly string[]) {
  const written = { out: '', err: '' }
  const output = (key: 'out' | 'err') => ({
    write: (text: string) => {
      written[key] += text
    },
  })
  const status = await runCommandLine(['plot', ...argv], {
    workingDirectory: folder,
    environment: {},
    stdout: output('out'),
    stderr: output('err'),
  })
  return { status, ...written }
}

it('draws a run into its folder, and several over each other', async () => {
  expect(await run('a')).toMatchObject({ status: 0, out: `wrote ${join(folder, 'a', 'curves.svg')}\n` })
  expect(readdirSync(join(folder, 'a'))).toEqual(['curves.svg', 'metrics.jsonl'])
  expect(readFileSync(join(folder, 'a', 'curves.svg'), 'utf8')).toContain('>Reward<')
  expect(await run('a', 'b/metrics.jsonl', '--title', 'two', '--out', 'both.svg')).toMatchObject({ status: 0 })
  const both = readFileSync(join(folder, 'both.svg'), 'utf8')
  for (const text of ['>two<', '>a<', '>b<']) expect(both).toContain(text)
})

it('says what is wrong', async () => {
  expect(await run('nowhere')).toMatchObject({ status: 2, err: expect.stringContaining('DATA_NOT_FOUND') })
  expect(await run('a', '--out', 'no/where.svg')).toMatchObject({ status: 2, err: expect.stringContaining('OUTPUT_UNUSABLE') })
  expect(await run('--help')).toMatchObject({ status: 0, out: expect.stringContaining('metrics.jsonl') })
})
