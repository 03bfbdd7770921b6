import { TrilithonError } from '@trilithon/core'
import { expect, it } from 'vitest'
import { reviveError } from './revive-error.ts'

it('an error of the thread arrives as it left', () => {
  const problem = new TrilithonError('DATA_INVALID', 'row 3', { path: 'a.jsonl', hint: 'Correct it.' })
  const error = new TrilithonError('CONFIG_INVALID', '1 problem', { problems: [problem] })
  expect(reviveError(JSON.parse(JSON.stringify(error)))).toMatchObject({
    code: 'CONFIG_INVALID',
    exitStatus: 2,
    problems: [{ code: 'DATA_INVALID', hint: 'Correct it.' }],
  })
})
