import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { KVStore, Parallelism, Precision, Replay, Router } from './index.ts'

test('a seam is one name for its type and its token', () => {
  const tokens = [Parallelism, Precision, KVStore, Router, Replay] satisfies { key: symbol }[]
  expect(tokens.map(({ id }) => id)).toEqual(['parallelism', 'precision', 'kv-store', 'router', 'replay'])
})

test('importing the package has no effect, apart from what zod does when it is imported', () => {
  const folder = fileURLToPath(new URL('..', import.meta.url))
  const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const script = `
    const effects = () => [Reflect.ownKeys(globalThis), process.eventNames(), process.getActiveResourcesInfo()].map((list) => list.map(String)).join()
    await import('zod')
    const before = effects()
    await import(${JSON.stringify(exports['.'].default)})
    if (effects() !== before) console.log(before, effects())`
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { cwd: folder, encoding: 'utf8' })
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' })
})
