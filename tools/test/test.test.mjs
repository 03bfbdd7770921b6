// @ts-check
/** `tools/test.mjs` in a small clone whose tools are scripts. */
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { projectRoot } from '../lib/workspace.mjs'
import { manifest, withTree } from './mini-tree.mjs'

/** What vitest writes. @param {number} passed @param {number} [failed] @param {number} [skipped] @param {boolean} [success] */
const vitestReport = (passed, failed = 0, skipped = 0, success = failed === 0) =>
  JSON.stringify({
    success,
    numPassedTests: passed,
    numFailedTests: failed,
    numPendingTests: skipped,
    startTime: 1000,
    testResults: [{ endTime: 2500 }],
  })

const write = (/** @type {string} */ file, /** @type {string} */ text) => `echo '${text}' >${file}`

const nxOutput = `
> nx run @trilithon/core:test

core is well

> nx run @trilithon/native:test

native is ill

 NX   Running target test for 2 projects failed

Failed tasks:

- @trilithon/native:test
`

/**
 * Programs (bodies of shell scripts) and files by path; what is left out succeeds.
 * @param {Record<string, string>} [programs] @param {Record<string, string>} [files] @param {string[]} [args]
 */
function runTests(programs = {}, files = {}, args = []) {
  const core = write('packages/core/test-results.json', vitestReport(10))
  const native = write('native/test-results.json', vitestReport(5))
  const all = {
    biome: 'exit 0',
    tsc: 'exit 0',
    vitest: write('tools/test-results.json', vitestReport(3)),
    nx: `case "$*" in *"-t test"*) ${core}; ${native} ;; esac`,
    ...programs,
  }
  const checks = ['check-floors', 'check-core-budget', 'check-docs', 'check-error-codes', 'format-native', 'test-third-party']
  const tree = {
    'packages/core/package.json': manifest('@trilithon/core'),
    'native/package.json': manifest('@trilithon/native'),
    'native/scripts/sanitize.mjs': '',
    'tools/bench/reverse-text.mjs': '',
    ...Object.fromEntries(checks.map((name) => [`tools/${name}.mjs`, `console.log('${name} holds')\n`])),
    ...files,
  }
  return withTree(tree, (root) => {
    for (const path of ['test.mjs', 'lib']) cpSync(join(projectRoot, 'tools', path), join(root, 'tools', path), { recursive: true })
    for (const [name, body] of Object.entries(all)) {
      const path = join(root, 'node_modules', '.bin', name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, `#!/bin/sh\n${body}\n`)
      chmodSync(path, 0o755)
    }
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'tools', 'test.mjs'), ...args], {
      cwd: root,
      encoding: 'utf8',
    })
    return {
      status,
      stdout,
      stderr,
      last: stdout.trimEnd().split('\n').at(-1),
      names: [...stdout.matchAll(/^(?:ok|skip|FAIL) +(.*?) {2,}\d/gm)].map(([, name]) => name),
    }
  })
}

test('one line per step, every check and every case counts', () => {
  const { status, stdout, stderr, last, names } = runTests()
  expect(names).toEqual([
    'format and lint',
    'floors',
    'core budget',
    'docs',
    'error codes',
    'format native',
    'typecheck tools',
    'test tools',
    'plugin from outside',
    'main example',
    'native sanitizers',
    'typecheck 2 packages',
    'test native',
    'test packages/core',
  ])
  expect(stdout).toMatch(/^ok {4}floors .* s {2}check-floors holds$/m)
  expect(stdout).toMatch(/^ok {4}test native +1\.5 s {2}5 passed$/m)
  expect({ status, stderr, last }).toEqual({ status: 0, stderr: '', last: '29 passed, 0 failed' })
})

test('a step that fails shows its output, and the others run', () => {
  const { status, stdout, last, names } = runTests({ tsc: 'echo "a.ts is wrong" >&2; exit 1' })
  expect(names).toHaveLength(14)
  expect(stdout).toMatch(/^FAIL {2}typecheck tools .*\n\na\.ts is wrong\n\nok/m)
  expect({ status, last }).toEqual({ status: 1, last: '28 passed, 1 failed' })
})

test('a step whose file is missing fails', () => {
  const { status, stdout, last } = runTests({}, { 'tools/check-docs.mjs': 'import "./gone.mjs"\n' })
  expect(stdout).toMatch(/^FAIL {2}docs [\s\S]*ERR_MODULE_NOT_FOUND/m)
  expect({ status, last }).toEqual({ status: 1, last: '28 passed, 1 failed' })
})

test('what is not available here is skipped with its reason, as are cases', () => {
  const { status, stdout, last } = runTests(
    { vitest: write('tools/test-results.json', vitestReport(3, 0, 2)) },
    { 'tools/format-native.mjs': "console.log('no program for this machine')\nprocess.exitCode = 3\n" },
  )
  expect(stdout).toMatch(/^skip {2}format native .*no program for this machine$/m)
  expect(stdout).toMatch(/^ok {4}test tools .*3 passed, 2 skipped$/m)
  expect({ status, last }).toEqual({ status: 0, last: '28 passed, 0 failed, 3 skipped' })
})

test('cases that fail are counted, and of nx only what failed is shown', () => {
  const core = write('packages/core/test-results.json', vitestReport(10))
  const native = write('native/test-results.json', vitestReport(3, 2))
  const { status, stdout, last } = runTests({ nx: `case "$*" in *"-t test"*) ${core}; ${native}; echo '${nxOutput}'; exit 1 ;; esac` })
  expect(stdout).toMatch(/^FAIL {2}test native .*3 passed, 2 failed$/m)
  expect(stdout).toContain('native is ill')
  expect(stdout).not.toContain('core is well')
  expect({ status, last }).toEqual({ status: 1, last: '27 passed, 2 failed' })
})

test.for([
  ['ends before it writes a report', 'exit 1', 'ended without a report'],
  ['fails outside of its cases', `${write('tools/test-results.json', vitestReport(3, 0, 0, false))}; exit 1`, '3 passed, 1 failed'],
  ['fails although its report does not', `${write('tools/test-results.json', vitestReport(3))}; exit 1`, 'vitest ended with status 1'],
])('a run of tests that %s is a failure', ([, vitest = '', remark = '']) => {
  const leftOver = { 'tools/test-results.json': vitestReport(3) }
  const { status, stdout, last } = runTests({ vitest }, leftOver, ['test', 'tools'])
  expect(stdout).toMatch(new RegExp(`^FAIL .*${remark}$`, 'm'))
  expect({ status, last }).toEqual({ status: 1, last: expect.stringMatching(/passed, 1 failed$/) })
})

test.for([
  [['floors'], ['floors']],
  [['core'], ['core budget', 'typecheck packages/core', 'test packages/core']],
  [['test', 'native'], ['test native']],
])('words choose steps: %j', ([args = [], expected]) => {
  const nx =
    'case "$*" in *"-p @trilithon/core"|*"-p @trilithon/native") ;; *) exit 1 ;; esac; case "$*" in *"-t test -p @trilithon/core") cd packages/core ;; *) cd native ;; esac'
  const { status, names } = runTests({ nx: `${nx}; ${write('test-results.json', vitestReport(1))}` }, {}, args)
  expect({ status, names }).toEqual({ status: 0, names: expected })
})

test('a word that no step contains is a usage error that lists the steps', () => {
  const { status, stdout, stderr } = runTests({}, {}, ['flors'])
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toMatch(/^No step's name contains "flors"\. Steps: format and lint, floors, .*, test 2 packages\.\n$/)
})
