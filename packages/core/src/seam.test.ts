import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type Disposable, defineSeam } from './seam.ts'
import { coreSeams } from './seams/index.ts'

test('two copies of core agree on a seam, and a new version is another seam', () => {
  const seam = { id: 'clock', cardinality: 'one', thread: 'main', runsIn: ['trainer'] } as const
  const first = defineSeam<Disposable>({ ...seam, version: 1 })
  expect(first).toEqual({ ...seam, version: 1, key: Symbol.for('@trilithon/seam/clock@1') })
  expect(defineSeam<Disposable>({ ...seam, version: 1 }).key).toBe(first.key)
  expect(defineSeam<Disposable>({ ...seam, version: 2 }).key).not.toBe(first.key)
})

test('the seams of core have distinct names and keys', () => {
  expect(coreSeams.map(({ id }) => id)).toEqual(['parallelism', 'precision', 'kv-store', 'router', 'replay'])
  expect(new Set(coreSeams.map(({ key }) => key)).size).toBe(coreSeams.length)
  for (const { runsIn } of coreSeams) expect(runsIn).not.toEqual([])
})

test.for(coreSeams)('the contract of $id states its thread and numbers its sentences', ({ id, thread }) => {
  const text = readFileSync(new URL(`./seams/${id}.ts`, import.meta.url), 'utf8')
  expect(text).toContain(`Thread: ${thread}.`)
  const sentences = [...text.matchAll(/^ \* - ([A-Z])(\d+) /gm)]
  expect(sentences.map((match) => Number(match[2]))).toEqual(sentences.map((_, index) => index + 1))
  expect(new Set(sentences.map((match) => match[1])).size).toBe(1)
})
