/**
 * Budget: 60 s. Roles that nobody launches, each a process of the built command line (dist), with batches over sockets: the trainer and then the orchestrator are killed and
 * started again while the others go on.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { tinyPolicy } from '../tiny-policy.ts'

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const running = new Set<ChildProcess>()
let folder = ''

interface Role {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  /** Resolves when it has said that; fails when it ends before. */
  says(pattern: RegExp): Promise<void>
}

function start(...argv: readonly string[]): Role {
  const child = spawn(process.execPath, [main, ...argv], { cwd: folder, env: { PATH: process.env.PATH, TRILITHON_THREADS: '1' } })
  running.add(child)
  let out = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => {
      out += text.toString()
    })
  const ended = new Promise<number | null>((resolve) => {
    child.on('close', (status) => {
      running.delete(child)
      resolve(status)
    })
  })
  return {
    child,
    ended,
    async says(pattern) {
      while (!pattern.test(out)) {
        if (!running.has(child)) throw new Error(`${argv[0]} ended without ${pattern}: ${out}`)
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    },
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-alone-'))
  writeFileSync(join(folder, 'config.json'), tinyPolicy)
  writeFileSync(
    join(folder, 'rl.toml'),
    `seq_len = 64
max_steps = 8
output_dir = "out"
[model]
name = "model"
[ckpt]
interval = 2
[rollout_transport]
type = "zmq"
port = 23450
hwm = 2
[trainer]
[orchestrator]
batch_size = 8
group_size = 4
[orchestrator.renderer]
name = "default"
[orchestrator.train.sampling]
max_completion_tokens = 12
[[orchestrator.train.env]]
id = "reverse-text"
[inference.server]
port = 23440
[inference.model]
max_model_len = 64
`,
  )
  expect(await start('init-model', 'config.json', '--out', 'model', '--seed', '1').ended).toBe(0)
  expect(await start('rl', '@', 'rl.toml', '--dry-run').ended).toBe(0)
}, 30_000)
afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const file = (role: string) => ['@', join('out', 'configs', `${role}.toml`)]
const rollouts = (...path: readonly string[]) => join(folder, 'out', 'run_default', 'rollouts', ...path)

it('what was shipped is trained as it is, each batch once in the end, whoever is killed and started again', {
  timeout: 120_000,
}, async () => {
  const inference = start('inference', ...file('inference'))
  const orchestrator = start('orchestrator', ...file('orchestrator'))
  const trainer = start('trainer', ...file('trainer'))
  await trainer.says(/Step 2 /)
  trainer.child.kill('SIGKILL')
  await trainer.ended
  await orchestrator.says(/Step 3 /)
  const shipped = new Map([0, 1, 2, 3].map((step) => [step, readFileSync(rollouts(`step_${step}`, 'train_rollouts.bin'))]))
  const trainerAgain = start('trainer', ...file('trainer'), '--ckpt.resume-step=-1')
  await trainerAgain.says(/Step 4 /)
  orchestrator.child.kill('SIGKILL')
  await orchestrator.ended
  const orchestratorAgain = start('orchestrator', ...file('orchestrator'), '--ckpt.resume-step=-1')
  expect(await Promise.all([trainerAgain.ended, orchestratorAgain.ended])).toEqual([0, 0])
  inference.child.kill('SIGTERM')
  await inference.ended
  const steps = readFileSync(join(folder, 'out', 'metrics', 'trainer.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).step)
  expect(steps).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  expect(readdirSync(rollouts()).sort()).toEqual(steps.map((step) => `step_${step}`))
  for (const [step, bytes] of shipped) expect(readFileSync(rollouts(`step_${step}`, 'train_rollouts.bin')).equals(bytes)).toBe(true)
  const ids = steps.flatMap((step) =>
    readFileSync(rollouts(`step_${step}`, 'train_rollouts.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).rollout_id),
  )
  expect(new Set(ids).size).toBe(8 * 8)
})
