import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'vitest'
import { kvStoreCases } from './kv-store-cases.ts'
import { routerCases } from './router-cases.ts'
import type { SuiteCase } from './suite.ts'

/** The numbers of the sentences in the doc comment of a seam: lines like ` * - R7 A lease that …`. */
function sentencesOf(seam: string): string[] {
  const text = readFileSync(new URL(`../../core/src/seams/${seam}.ts`, import.meta.url), 'utf8')
  return Array.from(text.matchAll(/^ \* - ([A-Z]\d+) /gm), ([, sentence = '']) => sentence)
}

describe.each([
  { seam: 'router', cases: routerCases as readonly SuiteCase<never>[] },
  { seam: 'kv-store', cases: kvStoreCases as readonly SuiteCase<never>[] },
])('suite of $seam', ({ seam, cases }) => {
  const sentences = sentencesOf(seam)
  const tested = new Set(cases.map(({ name }) => name.split(' ', 1)[0]))

  it('has a case for every sentence of the contract, and for no other', () => {
    assert.ok(sentences.length > 10, 'the doc comment of the seam numbers its sentences')
    assert.deepEqual([...tested].sort(), [...sentences].sort())
  })

  it('names each case once', () => {
    assert.equal(new Set(cases.map(({ name }) => name)).size, cases.length)
  })
})
