// @ts-check
/**
 * Installs and builds the workspace inside this clone: a pinned pnpm under `.tools`, the packages of the lock file, the native
 * addon, the TypeScript. Needs Node, npm, a C++20 compiler and CMake; what is missing is one sentence each, all at once.
 *
 * Everything it says goes to standard error, so that the command line keeps standard output for itself.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const toolsDir = join(root, '.tools')
const packageJson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const pnpmVersion = packageJson.devEngines.packageManager.version

/** The environment in which workspace tools run: the clone's own pnpm first, nx without daemon, plugin processes or colours in logs. */
export function toolEnvironment() {
  const bins = [join(toolsDir, 'node_modules', '.bin'), join(root, 'node_modules', '.bin')]
  return {
    ...process.env,
    PATH: [...bins, process.env.PATH ?? ''].join(delimiter),
    NX_DAEMON: 'false',
    NX_ISOLATE_PLUGINS: 'false',
    NX_TUI: 'false',
    NX_NO_CLOUD: 'true',
    // nx and pnpm answer a terminal with redrawn screens; a log wants lines.
    npm_config_update_notifier: 'false',
  }
}

/** One sentence per missing prerequisite, with the package that brings it. */
export function missingPrerequisites() {
  /** @type {string[]} */
  const missing = []
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major < 20 || (major === 20 && minor < 19))
    missing.push(
      `Node.js 20.19 or newer is needed, this is ${process.versions.node} (Debian: apt-get install nodejs; macOS: brew install node).`,
    )
  /** @param {string} command @param {string[]} args */
  const runs = (command, args) => spawnSync(command, args, { stdio: 'ignore' }).status === 0
  if (!runs('npm', ['--version'])) missing.push('npm is missing (Debian: apt-get install npm; macOS: brew install node).')
  if (!runs('cmake', ['--version'])) missing.push('CMake is missing (Debian: apt-get install cmake; macOS: brew install cmake).')
  const compilers = [process.env.CXX, 'c++', 'g++', 'clang++'].filter((name) => name !== undefined && name !== '')
  const compiler = compilers.find((name) => runs(/** @type {string} */ (name), ['--version']))
  if (compiler === undefined) {
    missing.push('A C++20 compiler is missing (Debian: apt-get install g++ make; macOS: xcode-select --install).')
  } else {
    const probe = spawnSync(compiler, ['-std=c++20', '-fsyntax-only', '-x', 'c++', '-'], {
      input: '#include <concepts>\n',
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    if (probe.status !== 0) missing.push(`${compiler} does not compile C++20 (Debian: apt-get install g++; macOS: xcode-select --install).`)
  }
  if (!runs('make', ['--version']) && !runs('ninja', ['--version']))
    missing.push('make (or ninja) is missing (Debian: apt-get install make; macOS: xcode-select --install).')
  return missing
}

/** Runs one step with a heartbeat; its output is kept and shown only when it fails, or live where `TRILITHON_VERBOSE` is set. */
async function step(/** @type {string} */ title, /** @type {string} */ command, /** @type {string[]} */ args, cwd = root) {
  const started = Date.now()
  const verbose = (process.env.TRILITHON_VERBOSE ?? '') !== ''
  const terminal = process.stderr.isTTY === true
  const seconds = () => `${Math.round((Date.now() - started) / 1000)} s`
  if (!terminal) process.stderr.write(`trilithon: ${title} ...\n`)
  const child = spawn(command, args, { cwd, env: toolEnvironment(), stdio: ['ignore', 'pipe', 'pipe'] })
  /** @type {Buffer[]} */
  const output = []
  let last = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (/** @type {Buffer} */ chunk) => {
      output.push(chunk)
      if (verbose) process.stderr.write(chunk)
      const line = chunk.toString().trimEnd().split('\n').at(-1)?.trim() ?? ''
      if (line !== '') last = line
    })
  const heartbeat = setInterval(
    () => {
      if (verbose) return
      if (terminal) process.stderr.write(`\r\u001b[Ktrilithon: ${title} (${seconds()}) ${last.slice(0, 60)}`)
      else process.stderr.write(`trilithon: ${title}, ${seconds()} so far\n`)
    },
    terminal ? 500 : 15_000,
  )
  /** @type {number} */
  const status = await new Promise((resolve) => {
    child.on('error', (error) => {
      output.push(Buffer.from(`${error.message}\n`))
      resolve(127)
    })
    child.on('close', (code) => resolve(code ?? 1))
  })
  clearInterval(heartbeat)
  if (terminal) process.stderr.write('\r\u001b[K')
  if (status !== 0) {
    if (!verbose) process.stderr.write(Buffer.concat(output))
    process.stderr.write(`trilithon: ${title} failed (${command} ${args.join(' ')}, exit ${status}).\n`)
    process.exit(1)
  }
  process.stderr.write(`trilithon: ${title}: done in ${seconds()}\n`)
}

/** Two shells may start at once after a pull: the second waits for the first instead of building into the same folders. */
async function lock() {
  const path = join(toolsDir, 'lock')
  let told = false
  for (;;) {
    try {
      writeFileSync(path, String(process.pid), { flag: 'wx' })
      process.on('exit', () => rmSync(path, { force: true }))
      for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(signal, () => process.exit(130))
      return
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error
    }
    let owner = 0
    try {
      owner = Number(readFileSync(path, 'utf8'))
      if (owner > 0) process.kill(owner, 0)
      // A lock whose writer has not yet written its pid is young; an old empty one is a leftover.
      else if (Date.now() - statSync(path).mtimeMs > 5_000) rmSync(path, { force: true })
    } catch (error) {
      const code = /** @type {NodeJS.ErrnoException} */ (error).code
      if (code === 'ESRCH') rmSync(path, { force: true })
      else if (code !== 'ENOENT' && code !== 'EPERM') throw error
    }
    if (!told) process.stderr.write(`trilithon: another build of this clone is running (process ${owner}), waiting for it\n`)
    told = true
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
}

async function bootstrap() {
  const missing = missingPrerequisites()
  if (missing.length > 0) {
    for (const sentence of missing) process.stderr.write(`trilithon: ${sentence}\n`)
    process.exit(3)
  }
  mkdirSync(toolsDir, { recursive: true })
  await lock()

  const pnpmManifest = join(toolsDir, 'node_modules', 'pnpm', 'package.json')
  if (!existsSync(pnpmManifest) || JSON.parse(readFileSync(pnpmManifest, 'utf8')).version !== pnpmVersion) {
    const args = [
      'install',
      '--prefix',
      toolsDir,
      '--no-package-lock',
      '--no-audit',
      '--no-fund',
      '--loglevel',
      'error',
      `pnpm@${pnpmVersion}`,
    ]
    await step(`installing pnpm ${pnpmVersion} into .tools`, 'npm', args, toolsDir)
  }
  // pnpm compares the lock file with node_modules itself and returns at once when they agree.
  await step('installing packages from the lock file', 'pnpm', ['install', '--frozen-lockfile', '--reporter', 'append-only'])
  await step('building native and TypeScript', 'nx', ['run-many', '-t', 'compile', 'build', '--output-style', 'stream', '--nx-bail'])
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bootstrap()
