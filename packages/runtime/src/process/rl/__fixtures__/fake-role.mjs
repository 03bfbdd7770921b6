// @ts-check
/**
 * Plays a role for the launcher: `node fake-role.mjs <role> @ <file> …`. What it does is in the variable FAKE_ROLES, JSON by role:
 * `steps` (3), `stepMs` (20), `at` (1): the step at which it does `does`: `throw`, `fail` (with `code`), `exit`, `refuse`, `hang` (deaf to SIGTERM as well), `busy`, `silent`.
 * `isReady`: false tells nobody that it is.
 * `child`: starts a process of its own. Pids go into the folder FAKE_PIDS. Ends when its channel does, unless it hangs.
 */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const role = process.argv[2] ?? ''
const { steps = 3, stepMs = 20, at = 1, does = '', child = false, code = 'WEIGHTS_INVALID', isReady = true } = JSON.parse(process.env.FAKE_ROLES ?? '{}')[role] ?? {}
const pids = process.env.FAKE_PIDS ?? '.'
/** @param {object} event */
const say = (event) => process.send?.({ role, ...event })
/** @param {number} ms */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

writeFileSync(join(pids, `${role}.pid`), `${process.pid}`)
if (child) {
  const { pid } = spawn(process.execPath, ['-e', 'setInterval(() => 0, 1000)'], { stdio: 'ignore' })
  writeFileSync(join(pids, `${role}-child.pid`), `${pid}`)
}
console.log(`${role} starts with ${process.argv.slice(3).join(' ')}; threads ${process.env.TRILITHON_THREADS}`)
let stopped = false
process.on('SIGTERM', () => {
  stopped = true
  console.log('asked to end')
  if (does === 'hang') return
  // With its own cost, like a checkpoint.
  setTimeout(() => process.exit(130), 30)
})
process.on('disconnect', () => process.exit(130))

const misbehave = () => {
  if (does === 'never-ready') return new Promise(() => setInterval(() => 0, 1000))
  if (does === 'throw') throw new Error(`${role} broke`)
  if (does === 'fail') {
    say({ kind: 'failed', error: { code, message: 'tensor x is NaN', hint: 'Look at it.' } })
    process.exit(1)
  }
  if (does === 'exit') process.exit(0)
  if (does === 'refuse') process.exit(2)
  if (does === 'busy') for (;;);
  if (does === 'hang' || does === 'silent') return new Promise(() => setInterval(() => 0, 1000))
  return undefined
}

if (does === 'never-ready') await misbehave()
else if (isReady) say({ kind: 'ready', ...(role === 'inference' ? { url: 'http://localhost:1' } : {}) })
let spent = 0
for (let step = 0; role === 'inference' || step < steps; step++) {
  if (step === at) await misbehave()
  say({ kind: 'status', state: 'waiting for a batch', values: { step, throughput: 1000 }, spent: { working: spent, 'waiting for a batch': 3 * spent } })
  await pause(stepMs)
  spent += stepMs / 1000
  if (stopped) await pause(1e6)
  if (role === 'orchestrator') say({ kind: 'step', step, values: { 'reward/all/mean': step / 10, 'time/step': 0.02, 'lag/max': 1 } })
  if (role === 'trainer') say({ kind: 'step', step, values: { 'loss/mean': Number.NaN, 'time/step': 0.01, 'perf/throughput': 1000 } })
}
process.send?.({ role, kind: 'ended' }, () => process.exit(0))
