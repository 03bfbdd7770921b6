// @ts-check
import { expect, test } from 'vitest'
import { checkCoreBudget, rules } from '../check-core-budget.mjs'
import { core } from '../floors.mjs'
import { formatProblem } from '../lib/problems.mjs'
import { codeLines } from '../lib/source.mjs'
import { cleanTree, manifest, withTree } from './mini-tree.mjs'

const clean = withTree(cleanTree, checkCoreBudget)
const free = core.codeLines - clean.lines

/** @param {number} count */
const lines = (count) => 'export {}\n'.repeat(count)

/** @type {{ rule: keyof typeof rules, title: string, files: Record<string, string>, says: string }[]} */
const planted = [
  {
    rule: 'core-lines',
    title: 'one line too many',
    files: { 'packages/core/src/more.ts': lines(free + 1) },
    says: `packages/core [core-lines] ${core.codeLines + 1} lines of code, ${core.codeLines} are allowed (largest: packages/core/src/more.ts ${free + 1},`,
  },
  {
    rule: 'core-dependencies',
    title: 'a second library',
    files: { 'packages/core/package.json': manifest('@trilithon/core', { dependencies: { zod: '' }, peerDependencies: { pino: '' } }) },
    says: 'packages/core/package.json [core-dependencies] It depends on pino, zod. Make the list exactly zod.',
  },
  {
    rule: 'core-dependencies',
    title: 'no library',
    files: { 'packages/core/package.json': manifest('@trilithon/core') },
    says: 'packages/core/package.json [core-dependencies] It depends on nothing.',
  },
]

test('a core within its budget passes, up to the last line', () => {
  expect(clean).toEqual({ lines: 4, problems: [] })
  const full = { 'packages/core/src/more.ts': lines(free), 'packages/core/src/more.test.ts': lines(9999) }
  expect(withTree({ ...cleanTree, ...full }, checkCoreBudget)).toEqual({ lines: core.codeLines, problems: [] })
})

test('every rule has a planted violation', () => {
  expect([...new Set(planted.map(({ rule }) => rule))].sort()).toEqual(Object.keys(rules).sort())
})

test.for(planted)('$rule: $title', ({ files, says }) => {
  const { problems } = withTree({ ...cleanTree, ...files }, checkCoreBudget)
  expect(problems.map(formatProblem)).toEqual([expect.stringContaining(says)])
})

test.for([
  ['blank and comment lines', '// a\n\n/**\n * b\n */\n', 0],
  ['code beside comments', 'let a = 1 // x\n/* y */ let b = 2\n', 2],
  ['what only looks like a comment', "const url = 'https://x'\nconst text = `\n// line\n\n/* block */`\n", 4],
  ['text beyond ASCII', '// τ 😀\nconst a = "😀" // x\n', 1],
])('lines of code: %s', ([, text, count]) => {
  expect(codeLines('a.ts', /** @type {string} */ (text))).toBe(count)
})
