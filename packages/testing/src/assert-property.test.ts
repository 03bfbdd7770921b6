import assert from 'node:assert/strict'
import fc from 'fast-check'
import { afterEach, describe, it } from 'vitest'
import { assertProperty, seedVariable } from './assert-property.ts'
import { hasCode } from './has-code.ts'

const values = async (): Promise<number[]> => {
  const seen: number[] = []
  await assertProperty(fc.integer(), async (value) => void seen.push(value), 20)
  return seen
}

describe('assertProperty', () => {
  afterEach(() => {
    delete process.env[seedVariable]
  })

  it('prints the seed of a failure, with the smallest value that fails', async () => {
    const failing = assertProperty(fc.nat(1000), async (value) => assert.ok(value < 17, 'too large'), 100)
    await assert.rejects(failing, /^Error: too large\nafter \[17\]\nRepeat with TRILITHON_TEST_SEED=\d+$/)
  })

  it('takes the seed back', async () => {
    process.env[seedVariable] = '12345'
    assert.deepEqual(await values(), await values())
    delete process.env[seedVariable]
    assert.notDeepEqual(await values(), await values())
  })

  it('refuses what is no seed', async () => {
    for (const text of ['abc', '1.5', '99999999999']) {
      process.env[seedVariable] = text
      await assert.rejects(values(), hasCode('USAGE_INVALID'))
    }
  })
})
