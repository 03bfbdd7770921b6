// @ts-check
/**
 * Everything that continuous integration runs, after `./trilithon` has built the clone: one line per step, the output of what failed, and a
 * last line that counts checks and test cases.
 *
 *   ./trilithon test              all steps
 *   ./trilithon test <word> …     steps whose name contains the words: floors, typecheck, "test core"
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { run, toolEnvironment } from './lib/run.mjs'
import { isMain, projectRoot, workspaceMembers } from './lib/workspace.mjs'

/**
 * A step is one check (exit status 0 holds, 3 is not available here and the last line of output says why, else it fails), or with `reports` a
 * run of vitest of which every case counts. A step over its budget of seconds is ended and fails.
 * @typedef {{ name: string, command: string, budgetS: number, reports?: Report[] }} Step
 * @typedef {{ name: string, file: string }} Report what vitest writes for one package
 */

/** Quick first. @type {readonly Step[]} */
const checks = [
  { name: 'format and lint', command: 'nx run trilithon:lint --output-style static', budgetS: 60 },
  { name: 'floors', command: 'node tools/check-floors.mjs', budgetS: 60 },
  { name: 'core budget', command: 'node tools/check-core-budget.mjs', budgetS: 60 },
  { name: 'docs', command: 'node tools/check-docs.mjs', budgetS: 60 },
  { name: 'error codes', command: 'node tools/check-error-codes.mjs', budgetS: 60 },
  { name: 'format native', command: 'node tools/format-native.mjs', budgetS: 60 },
  { name: 'typecheck tools', command: 'tsc -p tools --pretty false', budgetS: 60 },
  {
    name: 'test tools',
    command: 'vitest run --root tools',
    budgetS: 120,
    reports: [{ name: 'test tools', file: 'tools/test-results.json' }],
  },
  { name: 'plugin from outside', command: 'node tools/test-third-party.mjs', budgetS: 180 },
  { name: 'main example', command: 'node tools/bench/reverse-text.mjs', budgetS: 400 },
  { name: 'native sanitizers', command: 'node native/scripts/sanitize.mjs --threads 3', budgetS: 900 },
]

/**
 * Scripts of packages, run by nx, which keeps results: each with the budget of all packages together. Two at a time: tests that start processes and wait for them
 * need the cores that they count on.
 */
const targets = [
  { target: 'typecheck', budgetS: 300, hasReport: false },
  { target: 'test', budgetS: 1500, hasReport: true },
]

/** The steps whose names contain all words; of a target, the packages whose step would. @param {readonly string[]} words @returns {Step[]} */
function chooseSteps(words) {
  const isChosen = (/** @type {string} */ name) => words.every((word) => name.includes(word))
  const steps = checks.filter(({ name }) => isChosen(name))
  for (const { target, budgetS, hasReport } of targets) {
    const members = workspaceMembers(projectRoot).filter(
      ({ kind, folder, manifest }) => kind !== 'example' && manifest?.scripts?.[target] !== undefined && isChosen(`${target} ${folder}`),
    )
    if (members.length === 0) continue
    steps.push({
      name: members.length === 1 ? `${target} ${members[0]?.folder}` : `${target} ${members.length} packages`,
      command: `nx run-many --output-style static --parallel 2 -t ${target} -p ${members.map(({ manifest }) => manifest?.name).join()}`,
      budgetS,
      ...(hasReport
        ? { reports: members.map(({ folder }) => ({ name: `${target} ${folder}`, file: `${folder}/test-results.json` })) }
        : {}),
    })
  }
  return steps
}

/** @typedef {{ name: string, seconds: number, passed: number, failed: number, skipped: number, remark: string }} Line */

/** A report as a line. A run that wrote none, or that failed outside of its cases, counts as one failure. @param {Report} report @returns {Line} */
function lineOf({ name, file }) {
  const path = join(projectRoot, file)
  if (!existsSync(path)) return { name, seconds: 0, passed: 0, failed: 1, skipped: 0, remark: 'ended without a report' }
  const { success, numPassedTests, numFailedTests, numPendingTests, startTime, testResults } = JSON.parse(readFileSync(path, 'utf8'))
  const ends = testResults.map((/** @type {{ endTime: number }} */ { endTime }) => endTime)
  const failed = success ? 0 : Math.max(1, numFailedTests)
  const counts = [`${numPassedTests} passed`, failed > 0 && `${failed} failed`, numPendingTests > 0 && `${numPendingTests} skipped`]
  return {
    name,
    seconds: (Math.max(startTime, ...ends) - startTime) / 1000,
    passed: numPassedTests,
    failed,
    skipped: numPendingTests,
    remark: counts.filter((count) => count !== false).join(', '),
  }
}

/** Parts of the output of nx that belong to failed tasks; all of an output that names none. @param {string} output */
function failedParts(output) {
  const failed = [...(/\nFailed tasks:\n\n((?:- .*\n)+)/.exec(output)?.[1] ?? '').matchAll(/^- (.*)$/gm)].map((match) => match[1])
  const parts = output.split(/^(?=> nx run |\n NX )/m).filter((part) => failed.includes(/^> nx run (\S+)/.exec(part)?.[1]))
  return parts.length > 0 ? parts.join('') : output
}

/** @param {Step} step @returns {Promise<{ lines: Line[], output: string, isInterrupted: boolean }>} */
async function runStep({ name, command, budgetS, reports = [] }) {
  // A report that is left over must not count for a run that ends before it writes one.
  for (const { file } of reports) rmSync(join(projectRoot, file), { force: true })
  const [program = '', ...args] = command.split(' ')
  const started = Date.now()
  // biome makes a folder in the cache of the user, even an empty one; nothing that runs here belongs there.
  const env = { ...toolEnvironment(), XDG_CACHE_HOME: join(projectRoot, '.nx', 'user-cache') }
  const { status, output, end } = await run(program, args, { cwd: projectRoot, env, budgetS })
  const seconds = (Date.now() - started) / 1000

  const lines = reports.map(lineOf)
  if (end === 'budget') {
    lines.push({ name, seconds, passed: 0, failed: 1, skipped: 0, remark: `ended after its budget of ${budgetS} s` })
  } else if (status !== 0 && status !== 3 && !lines.some(({ failed }) => failed > 0)) {
    lines.push({ name, seconds, passed: 0, failed: 1, skipped: 0, remark: `${program} ended with status ${status}` })
  } else if (reports.length === 0) {
    const isSkipped = status === 3
    const remark = program === 'node' ? (output.trimEnd().split('\n').at(-1) ?? '') : ''
    lines.push({ name, seconds, passed: isSkipped ? 0 : 1, failed: 0, skipped: isSkipped ? 1 : 0, remark })
  }
  return { lines, output: failedParts(output), isInterrupted: end === 'signal' }
}

async function main() {
  const words = process.argv.slice(2)
  const steps = chooseSteps(words)
  if (steps.length === 0) {
    console.error(
      `No step's name contains "${words.join('" and "')}". Steps: ${chooseSteps([])
        .map(({ name }) => name)
        .join(', ')}.`,
    )
    process.exit(2)
  }
  const sum = { passed: 0, failed: 0, skipped: 0 }
  for (const step of steps) {
    if (process.stdout.isTTY) process.stdout.write(`      ${step.name} ...`)
    const { lines, output, isInterrupted } = await runStep(step)
    if (process.stdout.isTTY) process.stdout.write('\r\u001b[K')
    if (isInterrupted) {
      console.log(`interrupted while ${step.name}`)
      process.exit(130)
    }
    for (const { name, seconds, passed, failed, skipped, remark } of lines) {
      const word = failed > 0 ? 'FAIL' : passed === 0 && skipped > 0 ? 'skip' : 'ok'
      console.log(`${word.padEnd(5)} ${name.padEnd(26)} ${seconds.toFixed(1).padStart(6)} s  ${remark}`.trimEnd())
      sum.passed += passed
      sum.failed += failed
      sum.skipped += skipped
    }
    if (lines.some(({ failed }) => failed > 0)) console.log(`\n${output.trim()}\n`)
  }
  console.log(`${sum.passed} passed, ${sum.failed} failed${sum.skipped > 0 ? `, ${sum.skipped} skipped` : ''}`)
  process.exitCode = sum.failed > 0 ? 1 : 0
}

if (isMain(import.meta.url)) await main()
