/** Budget: 60 s. `trilithon eval` with the built command line (dist) and real processes. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tinyPolicy } from '../tiny-policy.ts'

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const port = 21_290
let folder = ''
let server: Server

function call(argv: readonly string[], interruptAt?: () => boolean): Promise<{ status: number | null; out: string; err: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...argv], { cwd: folder, env: { PATH: process.env.PATH, TRILITHON_THREADS: '1' } })
    let [out, err] = ['', '']
    child.stdout.on('data', (text: Buffer) => {
      out += text.toString()
    })
    child.stderr.on('data', (text: Buffer) => {
      err += text.toString()
    })
    const look = setInterval(() => {
      if (interruptAt?.() !== true) return
      clearInterval(look)
      child.kill('SIGINT')
    }, 50)
    child.on('close', (status) => {
      clearInterval(look)
      resolve({ status, out, err })
    })
  })
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-eval-'))
  writeFileSync(join(folder, 'config.json'), tinyPolicy)
  writeFileSync(
    join(folder, 'rl.toml'),
    `seq_len = 64
output_dir = "out"
[model]
name = "nowhere"
[ckpt]
resume_step = -1
[trainer]
[orchestrator.renderer]
name = "default"
[[orchestrator.train.env]]
id = "reverse-text"
[orchestrator.eval]
num_examples = 40
group_size = 2
[orchestrator.eval.sampling]
temperature = 1.0
max_completion_tokens = 12
[[orchestrator.eval.env]]
id = "reverse-text"
[inference.model]
max_model_len = 64
[inference.server]
port = ${port}
`,
  )
  expect(await call(['init-model', 'config.json', '--out', 'model', '--seed', '1'])).toMatchObject({ status: 0 })
  // As a run that is under way would.
  server = createServer()
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port }, () => resolve()))
})
afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

/** An environment of three tasks that gives half a point to everything. */
const environment = (episode: string) => `import { defineEnvironment } from '@trilithon/environments'
import { z } from 'zod'
export default defineEnvironment({
  name: 'x',
  args: z.strictObject({}),
  dataset: () => ({ size: { train: 1, eval: 3 }, task: ({ index }) => ({ index }) }),
  async episode({ model, task }) { ${episode} },
  score: () => 0.5,
})
`

describe('eval', () => {
  it('says the mean and how sure it is, beside a run that has the port, again and again', { timeout: 30_000 }, async () => {
    const argv = ['eval', '@', 'rl.toml', '--checkpoint', 'model']
    const { status, out, err } = await call(argv)
    expect([status, err]).toEqual([0, ''])
    const path = join(folder, 'out', 'evaluations', 'model')
    const report = JSON.parse(readFileSync(join(path, 'evaluation.json'), 'utf8'))
    const [of] = report.environments
    expect(report.model).toBe('model')
    // From the episodes themselves, another way: a mean of squares.
    const read = () =>
      readFileSync(join(path, 'run_default', 'rollouts', 'step_0', 'eval_rollouts_reverse-text.jsonl'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { group_id: string; rollout_id: string; reward: number; token_usage: object })
    const episodes = read()
    expect(episodes).toHaveLength(80)
    const tasks = [...new Set(episodes.map(({ group_id: id }) => id))].map((id) => {
      const rewards = episodes.filter((one) => one.group_id === id).map(({ reward }) => reward)
      return (rewards[0] ?? 0) / 2 + (rewards[1] ?? 0) / 2
    })
    const mean = tasks.reduce((sum, value) => sum + value / 40, 0)
    const squares = tasks.reduce((sum, value) => sum + value ** 2 / 40, 0)
    expect(of.reward).toBeCloseTo(mean, 12)
    expect(of.standard_error).toBeCloseTo(Math.sqrt((squares - mean ** 2) / 39), 9)
    expect(out).toMatch(
      new RegExp(`^reverse-text {2}avg@2 ${mean.toFixed(4)} ± ${of.standard_error.toFixed(4)} {2}\\(40 tasks, 0 errors, `),
    )
    const again = await call([...argv, '--json', '--out', 'report.json'])
    expect(JSON.parse(again.out).environments[0]).toMatchObject({ tasks: 40, errors: 0 })
    // The same model: the same answers.
    expect(JSON.parse(again.out).environments[0]).toMatchObject({ reward: of.reward, standard_error: of.standard_error })
    const answers = (list: typeof episodes) => list.map(({ rollout_id: id, reward, token_usage: usage }) => [id, reward, usage])
    expect(answers(read())).toEqual(answers(episodes))
    expect(new Set(episodes.map(({ reward }) => reward)).size).toBeGreaterThan(3)
    expect(JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8'))).toEqual(JSON.parse(again.out))
    expect(existsSync(join(path, 'evaluation.json'))).toBe(false)
  })

  it('of a file beside the configuration is named after it', { timeout: 30_000 }, async () => {
    const written = readFileSync(join(folder, 'rl.toml'), 'utf8')
    const local = written.replace('[[orchestrator.eval.env]]\nid = "reverse-text"', '[[orchestrator.eval.env]]\nid = "./halves.mjs"')
    expect(local).not.toBe(written)
    writeFileSync(join(folder, 'local.toml'), local)
    const argv = ['eval', '@', 'local.toml', '--checkpoint', 'model', '--orchestrator.eval.num-examples', '3']
    const missing = await call(argv)
    expect([missing.status, missing.out]).toEqual([2, ''])
    expect(missing.err).toMatch(/^ENVIRONMENT_INVALID.*eval\.env\.0\.id\n.*there is no file .*halves\.mjs/)
    writeFileSync(join(folder, 'halves.mjs'), environment("return (await model.turn('abcd=')).text"))
    const { status, out, err } = await call(argv)
    expect([status, err]).toEqual([0, ''])
    expect(out).toMatch(/^halves {2}avg@2 0\.5000 .*\(3 tasks, 0 errors, /)
    const path = join(folder, 'out', 'evaluations', 'model')
    expect(existsSync(join(path, 'run_default', 'rollouts', 'step_0', 'eval_rollouts_halves.jsonl'))).toBe(true)
    expect(existsSync(join(path, 'logs', 'envs', 'eval', 'halves', 'env_worker_0.log'))).toBe(true)
  })

  it('of an environment that hangs ends: its episodes at their timeout, all of it where they have none', { timeout: 60_000 }, async () => {
    writeFileSync(join(folder, 'hangs.mjs'), environment("await model.turn('abcd='); if (task.index === 1) await new Promise(() => {})"))
    const written = readFileSync(join(folder, 'rl.toml'), 'utf8')
    const last = '[[orchestrator.eval.env]]\nid = "reverse-text"'
    writeFileSync(join(folder, 'timed.toml'), written.replace(last, '[[orchestrator.eval.env]]\nid = "./hangs.mjs"\ntimeout = 2'))
    writeFileSync(join(folder, 'hangs.toml'), written.replace(last, '[[orchestrator.eval.env]]\nid = "./hangs.mjs"'))
    const flags = ['--checkpoint', 'model', '--orchestrator.eval.num-examples', '3', '--orchestrator.stall-timeout-seconds', '4']
    const timed = await call(['eval', '@', 'timed.toml', ...flags])
    expect(timed.status).toBe(0)
    expect(timed.out).toMatch(/^hangs .*\(3 tasks, 2 errors, /)
    const { status, err } = await call(['eval', '@', 'hangs.toml', ...flags])
    expect(status).toBe(2)
    expect(err).toMatch(/ENVIRONMENT_INVALID/)
    expect(err).toMatch(/nothing has come of 2 episodes in flight for [4-9] s.* task 1 of hangs/)
    expect(err).toMatch(/Set timeout of the environment hangs.*logs\/envs\/eval\/hangs\/env_worker_\*\.log/)
  })

  it('ends by Ctrl-C', { timeout: 30_000 }, async () => {
    const argv = ['eval', '@', 'rl.toml', '--checkpoint', 'model', '--orchestrator.eval.num-examples', '100000', '--output-dir', 'stopped']
    // A process of it has started, so the signal is listened to.
    const ended = await call(argv, () => existsSync(join(folder, 'stopped', 'evaluations', 'model', 'logs', 'inference.log')))
    expect(ended).toMatchObject({ status: 130, out: '' })
  })

  it.each([
    [['--checkpoint', 'nowhere'], 'MODEL_NOT_FOUND'],
    [[], 'MODEL_NOT_FOUND'],
    [['--checkpoint'], 'USAGE_INVALID'],
    [['--checkpoint', 'model', '--orchestrator.eval', 'None'], 'orchestrator.eval'],
  ] as const)('%j is refused with %s', async (flags, text) => {
    const { status, err } = await call(['eval', '@', 'rl.toml', ...flags])
    expect(status).toBe(2)
    expect(err).toContain(text)
  })

  it('says what an engine ended by', { timeout: 30_000 }, async () => {
    const { status, err } = await call(['eval', '@', 'rl.toml', '--checkpoint', 'model', '--inference.model.max-model-len', '128'])
    expect(status).toBe(1)
    expect(err).toContain('ROLE_ENDED')
    expect(err).toContain('max_model_len')
  })

  it('explains itself', async () => {
    expect((await call(['eval', '--help'])).out).toContain('--checkpoint DIR')
  })
})
