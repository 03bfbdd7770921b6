// @ts-check
/**
 * `./trilithon` and `bootstrap.mjs` in a small clone whose npm, pnpm, nx and compilers are scripts that write down their calls.
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { projectRoot } from '../lib/workspace.mjs'

/** What a POSIX system has, apart from what the project asks for. */
const utilities = ['sh', 'cat', 'cksum', 'dirname', 'find', 'mkdir', 'readlink', 'sleep', 'sort']

/** @param {string} name @returns {string | undefined} */
const which = (name) =>
  (process.env.PATH ?? '')
    .split(':')
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path) && statSync(path).isFile())

/** The clone, with spaces in its name. @type {string} */
let root
/** All that is on the PATH. @type {string} */
let bin

const put = (/** @type {string} */ path, /** @type {string} */ text, mode = 0o644) => {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
  chmodSync(join(root, path), mode)
}
const program = (/** @type {string} */ name, /** @type {string} */ body) => {
  rmSync(join(bin, name), { force: true })
  writeFileSync(join(bin, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
}
const environment = () => ({ PATH: bin, HOME: root })
const call = (/** @type {string[]} */ args, command = [join(root, 'trilithon')], cwd = tmpdir()) => {
  const [file = '', ...before] = command
  return spawnSync(file, [...before, ...args], { cwd, env: environment(), encoding: 'utf8' })
}
/** Calls of npm, pnpm and nx since the last question. */
const calls = () => {
  const log = join(root, '.tools', 'calls')
  if (!existsSync(log)) return []
  const lines = readFileSync(log, 'utf8').trim().split('\n')
  rmSync(log)
  return lines
}
const built = ['pnpm', 'nx', 'nx done']

beforeEach(() => {
  root = join(mkdtempSync(join(tmpdir(), 'trilithon-clone-')), 'a clone')
  bin = join(dirname(root), 'bin')
  mkdirSync(bin)
  for (const name of utilities) symlinkSync(which(name) ?? name, join(bin, name))
  symlinkSync(process.execPath, join(bin, 'node'))
  const log = `mkdir -p '${root}/.tools'; echo "\${0##*/}" >>'${root}/.tools/calls'`
  program(
    'npm',
    `[ "$1" = --version ] && exit 0\n${log}\nmkdir -p '${root}/.tools/node_modules/pnpm'; echo '{"version":"1.2.3"}' >'${root}/.tools/node_modules/pnpm/package.json'`,
  )
  program('pnpm', `${log}\nmkdir -p '${root}/node_modules'`)
  program('nx', `${log}\necho "nx done" >>'${root}/.tools/calls'`)
  program('cmake', 'echo "cmake version 3.25.1"')
  program('c++', 'exit 0')
  program('make', 'exit 0')

  for (const path of ['trilithon', 'tools/bootstrap.mjs', 'tools/lib/run.mjs', 'tools/lib/workspace.mjs'])
    cpSync(join(projectRoot, path), join(root, path))
  put('package.json', '{ "devEngines": { "packageManager": { "version": "1.2.3" } } }')
  for (const path of ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'nx.json', 'tsconfig.base.json']) put(path, '')
  put('native/CMakeLists.txt', 'cmake_minimum_required(VERSION 3.20)\n')
  put('packages/core/src/a file.ts', 'export {}\n')
  put('packages/cli/dist/main.js', 'console.log(JSON.stringify(process.argv.slice(1)))\n')
})
afterEach(() => rmSync(dirname(root), { recursive: true, force: true }))

const main = () => join(root, 'packages/cli/dist/main.js')

test('the first call builds, the next one runs; arguments arrive as they are', () => {
  const first = call(['rl', '--name', 'two words', ''])
  expect(JSON.parse(first.stdout)).toEqual([main(), 'rl', '--name', 'two words', ''])
  expect(first.stderr).toMatch(/^trilithon: installing pnpm 1\.2\.3 into \.tools \.\.\.\n/)
  expect(calls()).toEqual(['npm', ...built])

  const second = call(['rl', '--name', 'two words', ''])
  expect(second).toMatchObject({ status: 0, stderr: '', stdout: first.stdout })
  expect(calls()).toEqual([])
  expect(existsSync(join(root, '.tools/lock'))).toBe(false)
})

test('"test" runs the tests, built or not', () => {
  cpSync(join(projectRoot, 'tools/test.mjs'), join(root, 'tools/test.mjs'))
  const usage = { status: 2, stdout: '', stderr: expect.stringContaining('No step\'s name contains "core" and "no such step"') }
  expect(call(['test', 'core', 'no such step'])).toMatchObject(usage)
  expect(calls()).toEqual(['npm', ...built])
  expect(call(['test', 'core', 'no such step'])).toMatchObject(usage)
  expect(calls()).toEqual([])
})

test('"build" builds whatever the stamp says, and takes no arguments', () => {
  call([])
  calls()
  expect(call(['build'])).toMatchObject({ status: 0, stdout: '' })
  expect(calls()).toEqual(built)
  expect(call(['build', 'native'])).toMatchObject({ status: 2, stderr: 'trilithon: "build" takes no arguments. Run: ./trilithon build\n' })
})

test.for([
  { title: 'a source changes', change: () => put('packages/core/src/a file.ts', 'export const a = 1\n'), builds: true },
  { title: 'a source is added', change: () => put('native/new file.cpp', ''), builds: true },
  { title: 'a source is removed', change: () => rmSync(join(root, 'packages/core/src/a file.ts')), builds: true },
  {
    title: 'a source is renamed',
    change: () => renameSync(join(root, 'packages/core/src/a file.ts'), join(root, 'packages/core/src/b.ts')),
    builds: true,
  },
  { title: 'the lock file changes', change: () => put('pnpm-lock.yaml', 'x'), builds: true },
  { title: 'installed packages are gone', change: () => rmSync(join(root, 'node_modules'), { recursive: true }), builds: true },
  { title: 'a source has a new time only', change: () => put('packages/core/src/a file.ts', 'export {}\n'), builds: false },
  { title: 'a test changes', change: () => put('packages/core/src/a.test.ts', ''), builds: false },
  { title: 'a document changes', change: () => put('packages/core/README.md', ''), builds: false },
  { title: 'something is built', change: () => put('native/build/Release/addon.node', ''), builds: false },
  { title: 'tests have run', change: () => put('packages/core/test-results.json', ''), builds: false },
])('a call builds when $title: $builds', ({ change, builds }) => {
  call([])
  calls()
  change()
  expect(call([]).status).toBe(0)
  expect(calls()).toEqual(builds ? built : [])
  call([])
  expect(calls()).toEqual([])
})

test('the stamp is the same under every shell and from every place', () => {
  call([])
  calls()
  symlinkSync(join(root, 'trilithon'), join(bin, 'short'))
  symlinkSync('short', join(bin, 'shorter'))
  const shells = [['sh'], ['dash'], ['bash', '--posix'], ['busybox', 'sh']].flatMap(([name = '', ...rest]) =>
    which(name) === undefined ? [] : [[which(name) ?? '', ...rest]],
  )
  for (const shell of shells) {
    expect(call(['a b'], [...shell, join(root, 'trilithon')])).toMatchObject({ stderr: '', stdout: expect.stringContaining('"a b"]') })
    expect(call(['a b'], [...shell, 'trilithon'], root)).toMatchObject({ stderr: '', stdout: expect.stringContaining('"a b"]') })
    expect(call(['a b'], [...shell, join(bin, 'shorter')])).toMatchObject({ stderr: '', stdout: expect.stringContaining('"a b"]') })
  }
  expect(calls()).toEqual([])
})

test('without node: one sentence and status 3', () => {
  rmSync(join(bin, 'node'))
  expect(call([])).toMatchObject({ status: 3, stdout: '', stderr: expect.stringMatching(/^trilithon: Node\.js .*Debian .*macOS.*\n$/) })
})

/** A node that says it is another. */
const disguise = (/** @type {string} */ version) => {
  const module = `data:text/javascript,Object.defineProperty(process,"versions",{value:{node:"${version}"}})`
  program('node', `exec '${process.execPath}' --import '${module}' "$@"`)
}

test.for([
  {
    title: 'a new Node',
    change: () => disguise('18.19.0'),
    says: /Node\.js 20\.19, or 22\.12 or newer, is needed; this is 18\.19\.0 \(Debian/,
  },
  { title: 'a Node with long support', change: () => disguise('21.7.3'), says: /this is 21\.7\.3/ },
  { title: 'a new Node 22', change: () => disguise('22.11.0'), says: /this is 22\.11\.0/ },
  {
    title: 'npm',
    change: () => rmSync(join(bin, 'npm')),
    says: /npm is missing \(Debian: apt-get install npm; macOS: brew install node\)/,
  },
  {
    title: 'CMake',
    change: () => rmSync(join(bin, 'cmake')),
    says: /CMake is missing \(Debian: apt-get install cmake; macOS: brew install cmake\)/,
  },
  {
    title: 'a new CMake',
    change: () => program('cmake', 'echo "cmake version 3.9.6"'),
    says: /CMake 3\.20 or newer is needed, this is 3\.9 \(Debian/,
  },
  {
    title: 'a compiler',
    change: () => rmSync(join(bin, 'c++')),
    says: /A C\+\+20 compiler is missing \(Debian: apt-get install g\+\+; macOS: xcode-select/,
  },
  {
    title: 'a new compiler',
    change: () => program('c++', '[ "$1" = --version ]'),
    says: /The compiler c\+\+ does not know C\+\+20 \(Debian/,
  },
  { title: 'make', change: () => rmSync(join(bin, 'make')), says: /make is missing \(Debian: apt-get install make; macOS: xcode-select/ },
])('without $title: one sentence and status 3', ({ change, says }) => {
  change()
  const { status, stdout, stderr } = call([])
  expect({ status, stdout }).toEqual({ status: 3, stdout: '' })
  expect(stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(says)])
  expect(calls()).toEqual([])
})

test.for(['20.19.0', '22.12.0', '24.1.0'])('Node %s will do', (version) => {
  disguise(version)
  expect(call(['build'])).toMatchObject({ status: 0 })
})

test('everything that is missing is said at once', () => {
  for (const name of ['npm', 'cmake', 'c++', 'make']) rmSync(join(bin, name))
  expect(call([]).stderr.trimEnd().split('\n')).toHaveLength(4)
})

test('a step that fails shows its output and leaves no stamp', () => {
  call([])
  calls()
  program('nx', 'echo "the reason"; exit 7')
  put('packages/core/src/more.ts', '')
  expect(call([])).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringMatching(/the reason\n.*building native and TypeScript failed \(nx run-many .*, exit 7\)/),
  })
  // Back to the sources of the stamp, but not to what was built from them.
  rmSync(join(root, 'packages/core/src/more.ts'))
  expect(call([]).status).toBe(1)
})

test('a clone without a command line says so', () => {
  rmSync(main())
  expect(call(['--help'])).toMatchObject({
    status: 3,
    stdout: '',
    stderr: expect.stringMatching(/there is no command line in this clone: the build made no packages\/cli\/dist\/main\.js\..*\n$/),
  })
})

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Starts a call and resolves when it has ended. @param {string[]} args */
function start(args) {
  const child = spawn(join(root, 'trilithon'), args, { env: environment(), stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const ended = new Promise((resolve) => child.on('close', (status, signal) => resolve({ status: status ?? signal, stderr })))
  return { child, ended: /** @type {Promise<{ status: number | string, stderr: string }>} */ (ended) }
}

test('two calls at once: the second waits for the first', async () => {
  program('nx', `echo nx >>'${root}/.tools/calls'; sleep 0.5; echo 'nx done' >>'${root}/.tools/calls'`)
  const [one, two] = await Promise.all([start(['build']).ended, start(['build']).ended])
  expect([one.status, two.status]).toEqual([0, 0])
  expect(one.stderr + two.stderr).toMatch(/another build of this clone is running \(process \d+\), waiting for it/)
  expect(calls()).toEqual(['npm', 'pnpm', 'nx', 'nx done', 'pnpm', 'nx', 'nx done'])
})

test('a lock that a killed process left is taken over', () => {
  const { pid } = spawnSync('true')
  put('.tools/lock', String(pid))
  expect(call(['build']).status).toBe(0)
  expect(existsSync(join(root, '.tools/lock'))).toBe(false)
})

test.for(/** @type {const} */ (['SIGINT', 'SIGTERM']))('%s ends all that was started, and the next call recovers', async (signal) => {
  // A grandchild that shows that it lives by what it writes.
  program('nx', `while :; do echo alive; sleep 0.02; done >>'${root}/.tools/alive' & wait`)
  const { child, ended } = start(['build'])
  const alive = join(root, '.tools/alive')
  const written = () => (existsSync(alive) ? statSync(alive).size : 0)
  while (written() === 0) await pause(20)
  child.kill(signal)
  expect(await ended).toEqual({
    status: 130,
    stderr: expect.stringMatching(/interrupted while building native and TypeScript; the next call/),
  })
  const atEnd = written()
  await pause(200)
  expect(written()).toBe(atEnd)
  expect(existsSync(join(root, '.tools/lock'))).toBe(false)
  program('nx', 'exit 0')
  expect(call([]).status).toBe(0)
})
