// @ts-check
/** Runs the tools of the workspace, so that an interruption leaves nothing behind. */
import { spawn } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { projectRoot } from './workspace.mjs'

/** Where the clone keeps its own pnpm. */
export const toolsDir = join(projectRoot, '.tools')

/** The environment in which workspace tools run: the clone's own pnpm first; nx without daemon, plugin processes, redrawn screens and files elsewhere. */
export function toolEnvironment() {
  const bins = [join(toolsDir, 'node_modules', '.bin'), join(projectRoot, 'node_modules', '.bin')]
  return {
    ...process.env,
    PATH: [...bins, process.env.PATH ?? ''].join(delimiter),
    NX_DAEMON: 'false',
    NX_ISOLATE_PLUGINS: 'false',
    NX_TUI: 'false',
    NX_NO_CLOUD: 'true',
    NX_SKIP_NATIVE_FILE_CACHE: 'true',
    // A kept result is read later, on a terminal or not.
    FORCE_COLOR: '0',
    pnpm_config_update_notifier: 'false',
  }
}

/**
 * @typedef {object} RunOptions
 * @property {string} cwd
 * @property {NodeJS.ProcessEnv} env
 * @property {(chunk: Buffer) => void} [onOutput] called while it runs
 * @property {number} [budgetS] seconds after which it is ended
 */

/**
 * How a program ended. `status` is 127 where it could not be started; `end` says who ended it: the program itself, a signal to this process
 * (Ctrl-C), or its budget.
 * @typedef {{ status: number, output: string, end: 'exit' | 'signal' | 'budget' }} RunResult
 */

/**
 * The program gets a process group of its own, so that an interruption also reaches the compilers that a build tool started, whether or not
 * the tool passes it on. Standard output and standard error come back as one text.
 * @param {string} command @param {readonly string[]} args @param {RunOptions} options @returns {Promise<RunResult>}
 */
export async function run(command, args, { cwd, env, onOutput, budgetS }) {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  /** @type {Buffer[]} */
  const chunks = []
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (/** @type {Buffer} */ chunk) => {
      chunks.push(chunk)
      onOutput?.(chunk)
    })

  /** @type {RunResult['end']} */
  let end = 'exit'
  /** @type {NodeJS.Timeout[]} */
  const timers = []
  const kill = (/** @type {NodeJS.Signals} */ signal) => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal)
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH') throw error
    }
  }
  const stop = (/** @type {RunResult['end']} */ reason) => {
    end = reason
    kill('SIGTERM')
    timers.push(setTimeout(kill, 3_000, 'SIGKILL'))
  }
  const onSignal = () => stop('signal')
  const signals = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])
  for (const signal of signals) process.on(signal, onSignal)
  if (budgetS !== undefined) timers.push(setTimeout(stop, budgetS * 1000, 'budget'))

  /** @type {number} */
  const status = await new Promise((resolve) => {
    child.on('error', (error) => {
      chunks.push(Buffer.from(`${error.message}\n`))
      resolve(127)
    })
    child.on('close', (code) => resolve(code ?? 1))
  })
  for (const timer of timers) clearTimeout(timer)
  for (const signal of signals) process.off(signal, onSignal)
  return { status, output: Buffer.concat(chunks).toString(), end }
}
