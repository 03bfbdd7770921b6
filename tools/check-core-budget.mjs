// @ts-check
/**
 * Keeps core small: a bound on its lines of code (comments, blank lines and tests are free) and an exact list of dependencies.
 *
 *   node tools/check-core-budget.mjs
 */
import { core } from './floors.mjs'
import { report } from './lib/problems.mjs'
import { codeLines } from './lib/source.mjs'
import { filesBelow, isMain, projectRoot, readManifest, readText } from './lib/workspace.mjs'

/** @typedef {import('./lib/problems.mjs').Problem} Problem */

/** Every rule with the sentence that it stands for. One planted violation each is in `test/check-core-budget.test.mjs`. */
export const rules = {
  'core-lines': `Core has at most ${core.codeLines} lines of code.`,
  'core-dependencies': `Core depends on ${core.dependencies.join(', ')} and on nothing else.`,
}

/** @param {string} root @returns {{ lines: number, problems: Problem[] }} */
export function checkCoreBudget(root) {
  /** @type {Problem[]} */
  const problems = []
  const counts = filesBelow(root, `${core.folder}/src`, (path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .map((file) => ({ file, lines: codeLines(file, readText(root, file)) }))
    .sort((a, b) => b.lines - a.lines)
  const lines = counts.reduce((sum, count) => sum + count.lines, 0)
  if (lines > core.codeLines) {
    const largest = counts.slice(0, 3).map((count) => `${count.file} ${count.lines}`)
    problems.push({
      file: core.folder,
      rule: 'core-lines',
      message: `${lines} lines of code, ${core.codeLines} are allowed (largest: ${largest.join(', ')}).`,
      hint: 'Move what is not an interface, a crossing datum or an error to the package that uses it.',
    })
  }
  const { dependencies = {}, peerDependencies = {}, optionalDependencies = {} } = readManifest(root, core.folder)
  const declared = Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies }).sort()
  if (declared.join() !== [...core.dependencies].sort().join()) {
    problems.push({
      file: `${core.folder}/package.json`,
      rule: 'core-dependencies',
      message: `It depends on ${declared.join(', ') || 'nothing'}.`,
      hint: `Make the list exactly ${core.dependencies.join(', ')}.`,
    })
  }
  return { lines, problems }
}

if (isMain(import.meta.url)) {
  const { lines, problems } = checkCoreBudget(projectRoot)
  report(problems, `core: ${lines} of ${core.codeLines} lines of code, depends on ${core.dependencies.join(', ')}`)
}
