import assert from 'node:assert/strict'
import { TrilithonError } from '@trilithon/core'
import { afterAll, describe, it } from 'vitest'
import { describeRouter } from './describe-router.ts'
import { hasCode } from './has-code.ts'
import { caseTable, describeSuite, runCases, type SuiteContext, selectCases } from './suite.ts'

interface Toy extends SuiteContext {
  readonly played: string[]
}

const closed: string[][] = []
const open = async (): Promise<Toy> => {
  const played: string[] = []
  return {
    played,
    close: async () => {
      closed.push(played)
    },
  }
}

const cases = caseTable<Toy>()([
  { name: 'T1 holds', run: ({ played }) => void played.push('holds') },
  { name: 'T2 cannot be tried', run: (_, skip) => skip('the toy lacks a part') },
  { name: 'T3 needs both', claimed: ['big', 'red'], run: ({ played }) => void played.push('both') },
  { name: 'T4 is for the others', unclaimed: 'big', run: ({ played }) => void played.push('others') },
  { name: 'T5 fails', claimed: ['broken'], run: () => assert.fail('broken') },
])

describe('selectCases', () => {
  it('takes the cases whose capabilities are claimed', () => {
    const names = (capabilities?: Parameters<typeof selectCases>[1]) => selectCases(cases, capabilities).map(({ name }) => name.slice(0, 2))
    assert.deepEqual(names(), ['T1', 'T2', 'T4'])
    assert.deepEqual(names({ big: true }), ['T1', 'T2'])
    assert.deepEqual(names({ big: true, red: true }), ['T1', 'T2', 'T3'])
    assert.deepEqual(names({ big: 'yes', red: true }), ['T1', 'T2', 'T4'], 'only `true` claims')
  })
})

describe('runCases', () => {
  it('reports what passed, failed and was skipped, and closes every context', async () => {
    closed.length = 0
    const results = await runCases(cases, open)
    assert.deepEqual(
      results.map(({ status }) => status),
      ['passed', 'skipped', 'passed', 'passed', 'failed'],
    )
    assert.equal(closed.length, 5)
    assert.ok(results[1]?.status === 'skipped' && results[1].reason === 'the toy lacks a part')
  })
})

describe('describeSuite', () => {
  closed.length = 0
  describeSuite('a toy', cases, open, {
    capabilities: { broken: true },
    skip: { 'T5 fails': { reason: 'the toy is broken', instead: ({ played }) => void played.push('instead') } },
  })
  afterAll(() => {
    assert.deepEqual(
      closed.slice(-4).flat(),
      ['holds', 'others', 'instead'],
      'a skipped case is replaced by the test of what happens instead',
    )
  })

  it('refuses a skip of a case that is not there, or without a reason or a replacement', () => {
    const skipping =
      (skip: object, capabilities = {}) =>
      () =>
        describeSuite('a toy', cases, open, { capabilities, skip: skip as never })
    const whole = { reason: 'so', instead: () => undefined }
    for (const refused of [
      skipping({ 'T1 hols': whole }),
      skipping({ 'T5 fails': whole }),
      skipping({ 'T1 holds': { instead: whole.instead } }),
      skipping({ 'T1 holds': { ...whole, reason: ' ' } }),
      skipping({ 'T1 holds': { reason: 'so' } }),
    ])
      assert.throws(refused, (error) => {
        hasCode('USAGE_INVALID')(error)
        assert.ok(TrilithonError.is(error) && error.hint !== undefined && error.path?.startsWith('skip["T'))
        return true
      })
  })

  it('types skips by the names of the cases', () => {
    const typed = () => {
      // @ts-expect-error no case has this name
      describeRouter('typed', () => assert.fail(), { skip: { 'R7 a lease expires': { reason: 'so', instead: () => undefined } } })
      // @ts-expect-error a skip says what happens instead
      describeRouter('typed', () => assert.fail(), { skip: { 'R3 an excluded worker is never leased': { reason: 'so' } } })
    }
    assert.equal(typeof typed, 'function')
  })
})
