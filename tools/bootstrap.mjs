// @ts-check
/**
 * Installs and builds the workspace inside this clone: a pinned pnpm under `.tools`, the packages of the lock file, the native
 * addon, the TypeScript. Needs Node, npm, a C++20 compiler, make and CMake; what is missing is one sentence each, all at once.
 *
 *   node tools/bootstrap.mjs <stamp> build | test … | <command line of trilithon>
 *
 * `./trilithon` calls it when the stamp of the sources is not that of the last build. Then it goes on with what was asked, in this process.
 * Everything it says goes to standard error, so that the command line keeps standard output for itself.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { run, toolEnvironment, toolsDir } from './lib/run.mjs'
import { isMain, projectRoot as root } from './lib/workspace.mjs'

const stampFile = join(root, 'node_modules', '.trilithon-stamp')
const say = (/** @type {string} */ sentence) => process.stderr.write(`trilithon: ${sentence}\n`)

/** One sentence per missing prerequisite, with the package that brings it. */
export function missingPrerequisites() {
  /** @type {string[]} */
  const missing = []
  /** Output of a command, or undefined where it cannot run. @param {string} command @param {string[]} args @param {string} [input] */
  const outputOf = (command, args, input = '') => {
    const { status, stdout } = spawnSync(command, args, { input, stdio: ['pipe', 'pipe', 'ignore'], encoding: 'utf8' })
    return status === 0 ? stdout : undefined
  }
  /** @param {string} found @param {string} wanted */
  const isOlder = (found, wanted) => {
    const [major = 0, minor = 0] = found.split('.').map(Number)
    const [wantedMajor = 0, wantedMinor = 0] = wanted.split('.').map(Number)
    return major < wantedMajor || (major === wantedMajor && minor < wantedMinor)
  }
  const node = process.versions.node
  if (isOlder(node, '20.19') || (!isOlder(node, '21.0') && isOlder(node, '22.12')))
    missing.push(
      `Node.js 20.19, or 22.12 or newer, is needed; this is ${node} (Debian 13: apt-get install nodejs; macOS: brew install node).`,
    )
  if (outputOf('npm', ['--version']) === undefined) missing.push('npm is missing (Debian: apt-get install npm; macOS: brew install node).')

  const cmakeWanted =
    /cmake_minimum_required\(VERSION ([\d.]+)/.exec(readFileSync(join(root, 'native', 'CMakeLists.txt'), 'utf8'))?.[1] ?? '0'
  const cmake = outputOf('cmake', ['--version'])
  const cmakeVersion = /\d+\.\d+/.exec(cmake ?? '')?.[0] ?? '0'
  if (cmake === undefined) missing.push('CMake is missing (Debian: apt-get install cmake; macOS: brew install cmake).')
  else if (isOlder(cmakeVersion, cmakeWanted))
    missing.push(
      `CMake ${cmakeWanted} or newer is needed, this is ${cmakeVersion} (Debian 12: apt-get install cmake; macOS: brew install cmake).`,
    )

  // The order in which CMake looks.
  const compilers = process.env.CXX ? [process.env.CXX] : ['c++', 'g++', 'clang++']
  const compiler = compilers.find((name) => outputOf(name, ['--version']) !== undefined)
  if (compiler === undefined) {
    const named = process.env.CXX ? `, CXX=${process.env.CXX} does not run` : ''
    missing.push(`A C++20 compiler is missing${named} (Debian: apt-get install g++; macOS: xcode-select --install).`)
  } else if (outputOf(compiler, ['-std=c++20', '-fsyntax-only', '-x', 'c++', '-'], '#include <concepts>\n') === undefined) {
    missing.push(`The compiler ${compiler} does not know C++20 (Debian 12: apt-get install g++; macOS: xcode-select --install).`)
  }
  if (outputOf('make', ['--version']) === undefined && outputOf('ninja', ['--version']) === undefined)
    missing.push('make is missing (Debian: apt-get install make; macOS: xcode-select --install).')
  return missing
}

/** Runs one step with a heartbeat; its output is kept and shown only when it fails, or live where `TRILITHON_VERBOSE` is set. */
async function step(/** @type {string} */ title, /** @type {string} */ command, /** @type {string[]} */ args) {
  const started = Date.now()
  const verbose = (process.env.TRILITHON_VERBOSE ?? '') !== ''
  const terminal = process.stderr.isTTY === true
  const seconds = () => `${Math.round((Date.now() - started) / 1000)} s`
  if (!terminal) say(`${title} ...`)
  let last = ''
  const onOutput = (/** @type {Buffer} */ chunk) => {
    if (verbose) process.stderr.write(chunk)
    last = chunk.toString().trimEnd().split('\n').at(-1)?.trim() || last
  }
  const heartbeat = setInterval(
    () => {
      if (verbose) return
      if (terminal) process.stderr.write(`\r\u001b[Ktrilithon: ${title} (${seconds()}) ${last.slice(0, 60)}`)
      else say(`${title}, ${seconds()} so far`)
    },
    terminal ? 500 : 15_000,
  )
  const { status, output, end } = await run(command, args, { cwd: root, env: toolEnvironment(), onOutput })
  clearInterval(heartbeat)
  if (terminal) process.stderr.write('\r\u001b[K')
  if (end === 'signal') {
    say(`interrupted while ${title}; the next call goes on from here`)
    process.exit(130)
  }
  if (status !== 0) {
    if (!verbose) process.stderr.write(output)
    say(`${title} failed (${command} ${args.join(' ')}, exit ${status}).`)
    process.exit(1)
  }
  say(`${title}: done in ${seconds()}`)
}

/**
 * Two shells may start at once after a pull: the second waits for the first instead of building into the same folders.
 *
 * The owner touches the lock every second. It is left over when its process is gone, or (process ids are used again) was silent for a minute.
 * @returns {Promise<() => void>} gives the lock back
 */
async function lock() {
  const path = join(toolsDir, 'lock')
  const read = () => {
    try {
      return { owner: Number(readFileSync(path, 'utf8')), silentMs: Date.now() - statSync(path).mtimeMs }
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return undefined
      throw error
    }
  }
  let waited = false
  let told = false
  for (;;) {
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' })
      // Whoever judged the lock before this one left over has removed it by now, or never will.
      if (waited) await pause(100)
      if (read()?.owner === process.pid) break
      continue
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error
    }
    const held = read()
    if (held === undefined) continue
    if (held.silentMs > 60_000 || (held.owner > 0 && !isAlive(held.owner))) rmSync(path, { force: true })
    else if (!told && held.owner > 0) {
      say(`another build of this clone is running (process ${held.owner}), waiting for it`)
      told = true
    }
    waited = true
    await pause(100)
  }
  const beat = setInterval(() => utimesSync(path, new Date(), new Date()), 1_000).unref()
  const release = () => {
    clearInterval(beat)
    if (read()?.owner === process.pid) rmSync(path, { force: true })
  }
  process.on('exit', release)
  return release
}

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms))

function isAlive(/** @type {number} */ pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH'
  }
}

/** Makes the clone ready to run and records the stamp of the sources that it was built from. */
async function build(/** @type {string} */ stamp) {
  const missing = missingPrerequisites()
  if (missing.length > 0) {
    for (const sentence of missing) say(sentence)
    process.exit(3)
  }
  mkdirSync(toolsDir, { recursive: true })
  const release = await lock()
  // Until the end what is built belongs to no stamp, whatever happens on the way.
  rmSync(stampFile, { force: true })

  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).devEngines.packageManager
  const pnpmManifest = join(toolsDir, 'node_modules', 'pnpm', 'package.json')
  if (!existsSync(pnpmManifest) || JSON.parse(readFileSync(pnpmManifest, 'utf8')).version !== version) {
    const cache = join(toolsDir, 'npm-cache')
    const quiet = ['--no-package-lock', '--no-audit', '--no-fund', '--loglevel', 'error', '--logs-max', '0', '--cache', cache]
    await step(`installing pnpm ${version} into .tools`, 'npm', ['install', '--prefix', toolsDir, ...quiet, `pnpm@${version}`])
    rmSync(cache, { recursive: true, force: true })
  }
  // pnpm compares the lock file with node_modules itself and returns at once when they agree.
  await step('installing packages from the lock file', 'pnpm', ['install', '--frozen-lockfile', '--reporter', 'append-only'])
  await step('building native and TypeScript', 'nx', ['run-many', '-t', 'compile', 'build', '--output-style', 'stream'])

  writeFileSync(`${stampFile}.new`, `${stamp}\n`)
  renameSync(`${stampFile}.new`, stampFile)
  release()
}

async function bootstrap() {
  const [stamp, verb = '', ...rest] = process.argv.slice(2)
  if (stamp === undefined || (verb === 'build' && rest.length > 0)) {
    say('"build" takes no arguments. Run: ./trilithon build')
    process.exit(2)
  }
  await build(stamp)
  if (verb === 'build') return
  const [program, ...args] =
    verb === 'test'
      ? [join(root, 'tools', 'test.mjs'), ...rest]
      : [join(root, 'packages', 'cli', 'dist', 'main.js'), ...process.argv.slice(3)]
  if (!existsSync(program)) {
    say(`there is no command line in this clone: the build made no ${relative(root, program)}. Check that packages/cli is checked out.`)
    process.exit(3)
  }
  // As if node had been called with it.
  process.argv.splice(1, process.argv.length, program, ...args)
  await import(pathToFileURL(program).href)
}

if (isMain(import.meta.url)) await bootstrap()
