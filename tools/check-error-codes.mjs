// @ts-check
/**
 * Every code of the error catalogue is asserted by some test: it stands as a string in a test, in a conformance suite, or in a fixture.
 * A test that only constructs an error with the code does not count.
 *
 *   node tools/check-error-codes.mjs
 */
import { core } from './floors.mjs'
import { report } from './lib/problems.mjs'
import { parseModule, walk } from './lib/source.mjs'
import { filesBelow, isMain, projectRoot, readText } from './lib/workspace.mjs'

/** @typedef {import('./lib/problems.mjs').Problem} Problem */
/** @typedef {import('./lib/source.mjs').Node} Node */

/** Every rule with the sentence that it stands for. One planted violation each is in `test/check-error-codes.test.mjs`. */
export const rules = { 'error-code': 'Every error code is asserted by a test.' }

const catalogue = `${core.folder}/src/errors.ts`

/** Codes of the catalogue with their lines. @param {string} root @returns {Map<string, number>} */
function errorCodes(root) {
  /** @type {Map<string, number>} */
  const codes = new Map()
  const { program, lineOf } = parseModule(catalogue, readText(root, catalogue))
  walk(program, (node) => {
    if (node.type !== 'VariableDeclarator' || node.id.name !== 'errorCodes') return
    walk(node.init, ({ type, key, start }) => {
      if (type === 'Property') codes.set(key.name, lineOf(start))
    })
  })
  return codes
}

/** Text of a string, a template or a regular expression, unless it is the code of an error that is being made. @param {Node} node @param {Node | undefined} parent */
function assertedText(node, parent) {
  if (parent?.type === 'NewExpression' && parent.callee.name === 'TrilithonError') return ''
  if (node.type === 'TemplateElement') return node.value.raw
  return node.type === 'Literal' ? (node.regex?.pattern ?? String(node.value)) : ''
}

/** @param {string} root @returns {{ problems: Problem[], codes: number }} */
export function checkErrorCodes(root) {
  const codes = errorCodes(root)
  /** @type {Set<string>} */
  const asserted = new Set()
  const collect = (/** @type {string} */ text) => {
    for (const [word] of text.matchAll(/\b[A-Z][A-Z0-9_]+\b/g)) asserted.add(word)
  }
  const places = ['packages', 'native', 'plugins', 'examples']
  const isAssertion = (/** @type {string} */ path) => /\.test\.[cm]?[jt]s$/.test(path) || /^packages\/testing\/src\/.*\.ts$/.test(path)
  for (const file of places.flatMap((folder) => filesBelow(root, folder, isAssertion)))
    walk(parseModule(file, readText(root, file)).program, (node, parent) => collect(assertedText(node, parent)))
  const withFixtures = new Set(['node_modules', 'dist', 'build'])
  const isFixture = (/** @type {string} */ path) => path.includes('/__fixtures__/')
  for (const file of places.flatMap((folder) => filesBelow(root, folder, isFixture, withFixtures))) collect(readText(root, file))

  const problems = [...codes]
    .filter(([code]) => !asserted.has(code))
    .map(([code, line]) => ({
      file: catalogue,
      line,
      rule: 'error-code',
      message: `No test asserts ${code}.`,
      hint: 'Write a test that provokes it, or remove the code.',
    }))
  return { problems, codes: codes.size }
}

if (isMain(import.meta.url)) {
  const { problems, codes } = checkErrorCodes(projectRoot)
  report(problems, `${codes} error codes are asserted by tests`)
}
