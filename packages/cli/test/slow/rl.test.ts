/**
 * Budget: 260 s. Runs of `trilithon rl` with the built command line (dist) and real processes: steps, async level, off-policy bound, fresh or resumed, and the role that is
 * killed, chosen so that every pair of values occurs; ends by Ctrl-C; what is left when the launcher itself is killed.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { tinyPolicy } from '../tiny-policy.ts'

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
let folder = ''
const running = new Set<ChildProcess>()

interface Ended {
  readonly status: number | null
  readonly out: string
  readonly err: string
  readonly pids: ReadonlyMap<string, number>
}

/** Calls the command line; `watch` sees all of its output whenever there is more. */
function call(
  argv: readonly string[],
  watch?: (out: string, child: ChildProcess, pids: ReadonlyMap<string, number>) => void,
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...argv], { cwd: folder, env: { PATH: process.env.PATH, TRILITHON_THREADS: '1' } })
    running.add(child)
    let [out, err] = ['', '']
    const pids = new Map<string, number>()
    child.stderr?.on('data', (text: Buffer) => {
      err += text.toString()
    })
    child.stdout?.on('data', (text: Buffer) => {
      out += text.toString()
      for (const [, name = '', pid] of out.matchAll(/\((\S+)\): started as process (\d+)/g)) pids.set(name, Number(pid))
      watch?.(out, child, pids)
    })
    child.on('close', (status) => {
      running.delete(child)
      resolve({ status, out, err, pids })
    })
  })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, 'utf8') : '')
  } catch {
    return false
  }
}

/** Processes whose group one of the roles led: they and their children. */
function leftOf(pids: ReadonlyMap<string, number>): number[] {
  const groups = new Set(pids.values())
  if (!existsSync('/proc/self/stat')) return [...groups].filter(isAlive)
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name) || !existsSync(`/proc/${name}/stat`)) return []
    const [, state, , group] = /\) (\S) (\d+) (\d+)/.exec(statOf(name)) ?? []
    return state !== 'Z' && groups.has(Number(group)) ? [Number(name)] : []
  })
}

/** Who is left when all have gone, or after that time. */
async function leftAfter(pids: ReadonlyMap<string, number>, ms: number): Promise<number[]> {
  const deadline = performance.now() + ms
  while (leftOf(pids).length > 0 && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
  return leftOf(pids)
}

/** Processes end while one looks. */
function statOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return ''
  }
}

const steps = (run: string, role: string) =>
  readFileSync(join(folder, run, 'metrics.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { step: number; role: string; 'reward/all/mean'?: number; 'loss/mean'?: number })
    .flatMap((values) => (values.role === role && ('reward/all/mean' in values || 'loss/mean' in values) ? [values.step] : []))

/** The batches that lie in a run folder, each with its bytes. */
function shippedBatches(run: string): Map<number, Buffer> {
  const root = join(folder, run, 'run_default', 'rollouts')
  const names = existsSync(root) ? readdirSync(root) : []
  return new Map(
    names.flatMap((name) => {
      const path = join(root, name, 'train_rollouts.bin')
      return existsSync(path) ? [[Number(name.replace('step_', '')), readFileSync(path)] as const] : []
    }),
  )
}

/** Ids of the rollouts of all batches; those of samples begin with them. */
const rolloutIds = (run: string) =>
  [...shippedBatches(run).keys()].flatMap((step) =>
    readFileSync(join(folder, run, 'run_default', 'rollouts', `step_${step}`, 'train_rollouts.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { rollout_id: string }).rollout_id),
  )

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index)

let port = 21_300
const flags = (run: string) => ['rl', '@', 'rl.toml', '--output-dir', run, `--inference.server.port=${port++}`]

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-rl-'))
  writeFileSync(join(folder, 'config.json'), tinyPolicy)
  writeFileSync(
    join(folder, 'rl.toml'),
    `seq_len = 64
max_steps = 3
[model]
name = "model"
[ckpt]
interval = 1
[trainer.optim]
lr = 1e-3
[orchestrator]
batch_size = 8
group_size = 4
[orchestrator.renderer]
name = "default"
[orchestrator.train.sampling]
max_completion_tokens = 12
[[orchestrator.train.env]]
id = "reverse-text"
[inference.model]
max_model_len = 64
`,
  )
  expect(await call(['init-model', 'config.json', '--out', 'model', '--seed', '1'])).toMatchObject({ status: 0 })
})
afterEach(() => {
  for (const child of running) child.kill('SIGKILL')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Columns: steps, async level, off-policy bound, whether the run that is killed is a resumed one, who is killed, how batches travel. Every pair of values of two columns is in a row. */
const cases = [
  [1, 0, 8, 'fresh', 'orchestrator', 'zmq'],
  [1, 1, 0, 'fresh', 'trainer', 'filesystem'],
  [1, 1, 1, 'fresh', 'worker', 'zmq'],
  [1, 2, 0, 'resumed', 'inference', 'zmq'],
  [2, 0, 1, 'fresh', 'inference', 'filesystem'],
  [2, 0, 1, 'resumed', 'trainer', 'zmq'],
  [2, 1, 0, 'resumed', 'orchestrator', 'zmq'],
  [2, 2, 8, 'resumed', 'worker', 'filesystem'],
  [3, 0, 0, 'resumed', 'worker', 'zmq'],
  [3, 1, 8, 'resumed', 'inference', 'filesystem'],
  [3, 2, 8, 'resumed', 'trainer', 'filesystem'],
  [3, 2, 1, 'fresh', 'orchestrator', 'filesystem'],
] as const

it('the table has every pair of values', () => {
  const columns = [0, 1, 2, 3, 4, 5] as const
  for (const one of columns)
    for (const other of columns) {
      if (one >= other) continue
      const values = (column: (typeof columns)[number]) => new Set(cases.map((row) => String(row[column])))
      const pairs = new Set(cases.map((row) => `${row[one]} ${row[other]}`))
      expect(pairs.size, `columns ${one} and ${other}`).toBe(values(one).size * values(other).size)
    }
})

describe.each(cases)('%d steps, level %d, bound %d, %s, SIGKILL of the %s, by %s', (count, level, bound, begin, victim, transport) => {
  it('ends with its cause, leaves nothing behind, and goes on to its end', { timeout: 60_000 }, async () => {
    const run = `${count}-${level}-${bound}-${victim}`
    // The trainer that is started again listens where the one before did.
    const batchPort = port + 1000
    const of = (more: readonly string[]) => [
      ...flags(run),
      // An engine is started again otherwise.
      '--max-inference-restarts=0',
      ...(transport === 'zmq' ? ['--rollout-transport.type=zmq', `--rollout-transport.port=${batchPort}`] : []),
      `--orchestrator.max-async-level=${level}`,
      `--orchestrator.max-off-policy-steps=${bound}`,
      ...more,
    ]
    const before = begin === 'resumed' ? 1 : 0
    if (before > 0) expect(await call(of(['--max-steps', '1']))).toMatchObject({ status: 0, err: '' })
    const total = before + count
    let isKilled = false
    // In its first step where there is one only, behind it otherwise; always while the victim still has work, however late this process hears of it.
    const moments = {
      worker: /\(orchestrator\): ready/,
      orchestrator: count === 1 ? /\(trainer\): ready/ : new RegExp(`\\(orchestrator\\): Step ${before} `),
      trainer: count === 1 ? /\(trainer\): ready/ : new RegExp(`\\(trainer\\): Step ${before} `),
    }
    const moment = moments[victim === 'inference' ? 'trainer' : victim]
    const resume = before > 0 ? ['--ckpt.resume-step', '-1'] : []
    const killed = await call(of(['--max-steps', String(total), ...resume]), (out, _, pids) => {
      if (isKilled || !moment.test(out)) return
      const pid = victim === 'worker' ? childrenOf(pids.get('orchestrator'))[0] : pids.get(victim)
      if (pid === undefined) return
      isKilled = true
      process.kill(pid, 'SIGKILL')
    })
    expect(isKilled).toBe(true)
    expect(leftOf(killed.pids)).toEqual([])
    if (victim !== 'worker') {
      expect(killed.status).toBe(1)
      expect(killed.err).toContain('ROLE_ENDED')
      expect(killed.err).toContain(`the ${victim} was ended by SIGKILL`)
      const batches = shippedBatches(run)
      const saved = existsSync(join(folder, run, 'checkpoints')) && readdirSync(join(folder, run, 'checkpoints')).length > 0
      const again = await call(of(['--max-steps', String(total), ...(saved ? ['--ckpt.resume-step', '-1'] : ['--clean-output-dir'])]))
      expect(again).toMatchObject({ status: 0, err: '' })
      expect(leftOf(again.pids)).toEqual([])
      // What was shipped is trained as it is: no batch is written again.
      if (saved) for (const [step, bytes] of batches) expect(shippedBatches(run).get(step)?.equals(bytes), `batch ${step}`).toBe(true)
    } else expect(killed).toMatchObject({ status: 0 })
    // Each batch is trained once, and each rollout is in one batch.
    expect(steps(run, 'trainer')).toEqual(upTo(total))
    expect([...shippedBatches(run).keys()].sort((one, other) => one - other)).toEqual(upTo(total))
    const ids = rolloutIds(run)
    expect(ids).toHaveLength(8 * total)
    expect(new Set(ids).size).toBe(ids.length)
    // The line of a step may be lost with the process that writes it; none is there twice.
    const shipped = steps(run, 'orchestrator')
    expect(shipped).toEqual([...new Set(shipped)])
    expect(existsSync(join(folder, run, 'weights', `step_${total}`, 'model.safetensors'))).toBe(true)
  })
})

function childrenOf(pid: number | undefined): number[] {
  if (pid === undefined || !existsSync(`/proc/${pid}/task/${pid}/children`)) return []
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
}

/** Lines of the trainer's metrics. */
const trained = (run: string) =>
  readFileSync(join(folder, run, 'metrics', 'trainer.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, number>)
    .filter((values) => 'loss/mean' in values)

describe('an engine that dies', () => {
  it('is started again and brought to the version of the run, which goes on as if nothing had been', { timeout: 60_000 }, async () => {
    let killed: number | undefined
    // At this level every token is of the version that trains.
    const more = ['--max-steps', '8', '--orchestrator.max-async-level', '0']
    const run = await call([...flags('again'), ...more], (out, _, pids) => {
      if (killed !== undefined || !/\(trainer\): Step 2 /.test(out)) return
      killed = pids.get('inference')
      process.kill(Number(killed), 'SIGKILL')
    })
    expect(run).toMatchObject({ status: 0, err: '' })
    expect(run.pids.get('inference')).not.toBe(killed)
    expect(leftOf(run.pids)).toEqual([])
    const lines = run.out.split('\n').filter((line) => line.includes('is started again'))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(
      /WARNING \(launcher\): the inference was ended by SIGKILL.*\(restart 1 of 3\), its log: again\/logs\/inference\.log$/,
    )
    expect(steps('again', 'trainer')).toEqual(upTo(8))
    expect(steps('again', 'orchestrator')).toEqual(upTo(8))
    const ids = rolloutIds('again')
    expect(ids).toHaveLength(8 * 8)
    expect(new Set(ids).size).toBe(ids.length)
    // And the engine's log-probability of it is the trainer's, bit for bit, before and after.
    expect(trained('again').map((values) => values['mismatch_kl/exact/max'])).toEqual(Array(8).fill(0))
  })

  it('more often than it may ends the run with its cause and leaves nothing', { timeout: 60_000 }, async () => {
    const killed = new Set<number>()
    const run = await call([...flags('often'), '--max-steps', '100000', '--max-inference-restarts', '1'], (out, _, pids) => {
      const pid = pids.get('inference')
      const isReady = (out.match(/\(inference\): ready/g) ?? []).length > killed.size
      if (pid === undefined || killed.has(pid) || !isReady || !/\(trainer\): Step 1 /.test(out)) return
      killed.add(pid)
      process.kill(pid, 'SIGKILL')
    })
    expect(killed.size).toBe(2)
    expect(run.status).toBe(1)
    expect(run.err).toContain('ROLE_ENDED')
    expect(run.err).toContain('the inference was ended by SIGKILL')
    expect(leftOf(run.pids)).toEqual([])
  })
})

describe('an end from outside', () => {
  const forever = (run: string) => [...flags(run), '--max-steps', '100000']
  const trained = /\(trainer\): Step 1 /

  it('Ctrl-C ends every role in order, and the run goes on from where it was', { timeout: 60_000 }, async () => {
    let stoppedMs = 0
    const stopped = await call(forever('stopped'), (out, child) => {
      if (stoppedMs > 0 || !trained.test(out)) return
      stoppedMs = performance.now()
      child.kill('SIGINT')
    })
    expect((performance.now() - stoppedMs) / 1000).toBeLessThan(12)
    expect(stopped.status).toBe(130)
    expect(leftOf(stopped.pids)).toEqual([])
    const done = steps('stopped', 'trainer').length
    const again = await call([...flags('stopped'), '--max-steps', String(done + 1), '--ckpt.resume-step', '-1'])
    expect(again).toMatchObject({ status: 0, err: '' })
    expect(steps('stopped', 'trainer')).toEqual(upTo(done + 1))
  })

  it('a second Ctrl-C ends at once', { timeout: 60_000 }, async () => {
    let count = 0
    const stopped = await call(forever('twice'), (out, child) => {
      if (count > 0 || !trained.test(out)) return
      count++
      child.kill('SIGINT')
      setTimeout(() => child.kill('SIGINT'), 20)
    })
    expect(stopped.status).toBe(130)
    // Killed, with nobody left to wait until they are gone.
    expect(await leftAfter(stopped.pids, 1000)).toEqual([])
  })

  it('roles end when the launcher is killed', { timeout: 60_000 }, async () => {
    let isKilled = false
    const killed = await call(forever('orphans'), (out, child) => {
      if (isKilled || !trained.test(out)) return
      isKilled = true
      child.kill('SIGKILL')
    })
    expect(await leftAfter(killed.pids, 12_000)).toEqual([])
  })
})
