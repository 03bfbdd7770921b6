// @ts-check
/**
 * Builds the addon and the kernel harness: progress while it works, the compiler's words only when it fails.
 *
 *   node scripts/compile.mjs [--addon] [--clean]     --addon leaves the harness out, which only tests need
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = dirname(dirname(fileURLToPath(import.meta.url)))
const build = join(folder, 'build')
const logFile = join(build, 'compile.log')

/** A build folder remembers absolute paths; after a copy or a move it describes another place and has to go. */
function isFromElsewhere() {
  const cache = join(build, 'CMakeCache.txt')
  if (!existsSync(cache)) return false
  const home = /^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$/m.exec(readFileSync(cache, 'utf8'))?.[1]
  return home !== folder
}

if (process.argv.includes('--clean') || isFromElsewhere()) rmSync(build, { recursive: true, force: true })
mkdirSync(build, { recursive: true })

const target = process.argv.includes('--addon') ? ['--target', 'trilithon_native'] : []
const require = createRequire(import.meta.url)
const cmakeJs = join(dirname(require.resolve('cmake-js/package.json')), 'bin', 'cmake-js')
const child = spawn(
  process.execPath,
  [cmakeJs, 'build', '--directory', folder, '--CDCMAKE_BUILD_TYPE=Release', '--parallel', String(availableParallelism()), ...target],
  { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
)

let log = ''
let shown = ''
let lastShown = 0
const started = Date.now()
const terminal = process.stdout.isTTY === true

/** @param {string} text */
function show(text) {
  if (text === shown) return
  // A terminal redraws one line; a log file gets a line now and then.
  if (!terminal && Date.now() - lastShown < 5000) return
  shown = text
  lastShown = Date.now()
  process.stdout.write(terminal ? `\r\x1b[K${text}` : `${text}\n`)
}

/** @param {Buffer} chunk */
function onOutput(chunk) {
  const text = chunk.toString()
  log += text
  const steps = [...text.matchAll(/\[ *(\d+%|\d+\/\d+)\]/g)]
  const step = steps.at(-1)?.[1]
  show(step ? `native: compiling ${step}` : 'native: configuring')
}
child.stdout.on('data', onOutput)
child.stderr.on('data', onOutput)

child.on('error', (error) => {
  process.stderr.write(`native: cannot start cmake-js: ${error.message}\n`)
  process.exitCode = 1
})

child.on('close', (code) => {
  if (terminal) process.stdout.write('\r\x1b[K')
  writeFileSync(logFile, log)
  if (code !== 0) {
    process.stderr.write(log)
    const missing = /CMake is not installed|CMake executable is not found/.test(log)
    const hint = missing ? ' CMake is missing (Debian: apt-get install cmake g++; macOS: brew install cmake).' : ''
    process.stderr.write(`native: the build failed (status ${code}).${hint}\n`)
    process.exitCode = 1
    return
  }
  process.stdout.write(`native: built in ${((Date.now() - started) / 1000).toFixed(1)} s\n`)
})
