// @ts-check
import { expect, test } from 'vitest'
import { checkErrorCodes, rules } from '../check-error-codes.mjs'
import { formatProblem } from '../lib/problems.mjs'
import { cleanTree, withTree } from './mini-tree.mjs'

const testFile = 'packages/core/src/errors.test.ts'

test('a catalogue of which a test asserts every code passes', () => {
  expect(withTree(cleanTree, checkErrorCodes)).toEqual({ problems: [], codes: 2 })
})

test.for([
  ['a code that no test names', "expect(code).toBe('A_BROKEN')\n"],
  ['a code that a test makes and does not assert', "expect(code).toBe('A_BROKEN')\nthrow new TrilithonError('B_BROKEN', 'text')\n"],
  ['a code in a comment', "expect(code).toBe('A_BROKEN') // B_BROKEN\n"],
  ['a longer word', "expect(code).toBe('A_BROKEN', 'B_BROKEN_TOO')\n"],
])(`${Object.keys(rules)}: %s`, ([, text = '']) => {
  const { problems } = withTree({ ...cleanTree, [testFile]: text }, checkErrorCodes)
  expect(problems.map(formatProblem)).toEqual([
    'packages/core/src/errors.ts:2 [error-code] No test asserts B_BROKEN. Write a test that provokes it, or remove the code.',
  ])
})

test.for([
  ['a regular expression', testFile, 'expect(text).toMatch(/A_BROKEN: .*B_BROKEN/)\n'],
  ['a template', testFile, 'expect(text).toBe(`A_BROKEN\nB_BROKEN`)\n'],
  ['a conformance suite', 'packages/testing/src/describe-router.ts', "throwsCode('A_BROKEN', 'B_BROKEN')\n"],
  ['a fixture', 'packages/runtime/src/__fixtures__/report.json', '{ "codes": ["A_BROKEN", "B_BROKEN"] }\n'],
])('asserted in %s', ([, path = '', text = '']) => {
  const { [testFile]: _, ...others } = cleanTree
  expect(withTree({ ...others, [path]: text }, checkErrorCodes).problems).toEqual([])
})
