/** Budget: 30 s. `startRl` from composition to end, with processes that play the roles. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { TrilithonError } from '@trilithon/core'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLocalLauncher } from '../../src/process/rl/local-launcher.ts'
import { startRl } from '../../src/process/start-rl.ts'
import { Folder } from '../compose-in-folder.ts'

const fake = fileURLToPath(new URL('../../src/process/rl/__fixtures__/fake-role.mjs', import.meta.url))
const file = `max_steps = 3
output_dir = "out"
[model]
name = "model"
[ckpt]
[trainer]
[orchestrator.renderer]
name = "default"
[[orchestrator.train.env]]
id = "reverse-text"
[inference.server]
port = 18473
`

let folder: Folder
beforeEach(() => {
  folder = new Folder().write({ 'rl.toml': file, 'model/config.json': '{}' })
})
afterEach(() => folder.remove())

async function run(
  argv: readonly string[] = [],
  behaviours: object = {},
  output: { isTTY?: boolean; columns?: number } = {},
  variables = {},
  problems: readonly TrilithonError[] = [],
) {
  const environment = { PATH: process.env.PATH, ...variables, FAKE_ROLES: JSON.stringify(behaviours), FAKE_PIDS: folder.path }
  let text = ''
  const compose = (flags: readonly string[]) => folder.compose('rl', ['@', 'rl.toml', ...argv, ...flags])
  const result = await startRl(await compose([]), {
    ...{ environment, problems },
    colors: false,
    output: {
      ...output,
      write(part: string) {
        text += part
      },
    },
    commandLine: [process.execPath, fake],
    recompose: compose,
    launcher: createLocalLauncher({ graceMs: 500 }),
  }).catch((error: unknown) => ({ status: 'refused', error }) as const)
  return { ...result, text, problem: 'error' in result ? result.error : undefined }
}

const out = (...path: readonly string[]) => join(folder.path, 'out', ...path)
const metrics = () =>
  readFileSync(out('metrics.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
const checkpoint = (step: number, ...parts: readonly ('trainer' | 'orchestrator')[]) => {
  if (parts.includes('trainer')) folder.write({ [`out/checkpoints/step_${step}/trainer/COMPLETE`]: '' })
  if (parts.includes('orchestrator')) folder.write({ [`out/run_default/checkpoints/step_${step}/orchestrator/progress.json`]: '{}' })
}

describe('a run', () => {
  it('leaves its folder, and lines of every role that others can read', async () => {
    const { status, text } = await run()
    expect(status).toBe(0)
    expect(readdirSync(out()).sort()).toEqual(['configs', 'logs', 'metrics.jsonl'])
    expect(readdirSync(out('configs')).sort()).toEqual(['inference.toml', 'orchestrator.toml', 'trainer.toml'])
    expect(readdirSync(out('logs')).sort()).toEqual(['inference.log', 'orchestrator.log', 'trainer.log'])
    const log = (name: string) => readFileSync(out('logs', `${name}.log`), 'utf8')
    expect(log('trainer')).toContain(`@ ${out('configs', 'trainer.toml')}; threads `)
    expect(log('inference')).toContain(`inference.toml --server.port=18473 --parallel.dp=1 --output-dir=${out()}`)
    expect(text).toMatch(/INFO \(launcher\): starting: inference, orchestrator, trainer; logs in /)
    expect(text).toMatch(/INFO \(inference\): ready, http:\/\/localhost:1\n/)
    for (const step of [0, 1, 2]) {
      expect(text).toMatch(
        new RegExp(`SUCCESS \\(orchestrator\\): Step ${step} \\| 0\\.02s \\| Reward 0\\.${step}000 \\| Max Off-Policy 1\n`),
      )
      expect(text).toMatch(new RegExp(`SUCCESS \\(trainer\\): Step ${step} \\| 0\\.01s \\| .*Throughput 1000 tokens/s\n`))
    }
    expect(text).toMatch(/INFO \(launcher\): done: 3 steps, .*\n$/)
    const trained = metrics().filter(({ role }) => role === 'trainer')
    expect(trained.map(({ step }) => step)).toEqual([0, 1, 2])
    // JSON has no NaN.
    expect(trained[0]).toEqual({ step: 0, role: 'trainer', 'time/step': 0.01, 'perf/throughput': 1000 })
    const own = metrics().filter(({ role }) => role === 'launcher')
    expect(own.map(({ step }) => step)).toEqual([0, 1, 2])
    expect(own.at(-1)).toMatchObject({ 'time/wall': expect.any(Number), 'throughput/trainer': 1000 })
    // The roles say of themselves that they waited for three quarters of their time; the last state goes on until now.
    expect(own.at(-1)['idle/trainer']).toBeGreaterThan(0.6)
  })

  it('shows a block on a terminal that says who waits for whom', async () => {
    const { text } = await run(
      ['--max-steps', '30'],
      { orchestrator: { steps: 30 }, trainer: { steps: 30 } },
      { isTTY: true, columns: 100 },
    )
    const last = text.slice(text.lastIndexOf('\u001b[J'))
    expect(last).toMatch(/rl +step 30\/30 {2}elapsed 0:\d\d {2}ETA 0:00/)
    expect(last).toMatch(/reward +2\.9000 ▁.*█/)
    expect(last).toMatch(/tokens\/s +inference \d+ {2}trainer 1000/)
    expect(last).toMatch(/trainer +waits [67]\d % +done, step 29/)
    expect(text).not.toContain('SUCCESS')
  })

  it('ends with the cause when a role fails, and with the exit status of that', async () => {
    const { status, problem } = await run([], { trainer: { does: 'throw' }, orchestrator: { steps: 1e6 } })
    expect(status).toBe(1)
    expect(problem).toMatchObject({ code: 'ROLE_ENDED', message: expect.stringContaining('Error: trainer broke') })
  })

  it('ends in order with what it could not write itself', async () => {
    const forever = { steps: 1e6 }
    const ended = run([], { trainer: forever, orchestrator: forever })
    while (!existsSync(out('metrics.jsonl')) || !readFileSync(out('metrics.jsonl'), 'utf8').includes('trainer'))
      await new Promise((resolve) => setTimeout(resolve, 20))
    rmSync(out('metrics.jsonl'))
    mkdirSync(out('metrics.jsonl'))
    expect(await ended).toMatchObject({
      status: 2,
      problem: { code: 'OUTPUT_UNUSABLE', message: expect.stringContaining('metrics.jsonl') },
    })
    expect(readFileSync(out('logs', 'trainer.log'), 'utf8')).toContain('asked to end')
  })

  it('ends in order by SIGTERM with 130', async () => {
    const forever = { steps: 1e6 }
    const ended = run([], { trainer: forever, orchestrator: forever })
    while (!existsSync(out('metrics.jsonl')) || !readFileSync(out('metrics.jsonl'), 'utf8').includes('trainer'))
      await new Promise((resolve) => setTimeout(resolve, 20))
    process.emit('SIGTERM', 'SIGTERM')
    expect(await ended).toMatchObject({ status: 130, problem: undefined })
    expect(readFileSync(out('logs', 'trainer.log'), 'utf8')).toContain('asked to end')
  })
})

describe('before anything starts', () => {
  let server: Server | undefined
  afterEach(() => server?.close())

  it('all that is wrong is said at once, and nothing is changed', async () => {
    server = createServer()
    await new Promise<void>((resolve) => server?.listen({ host: '127.0.0.1', port: 18473 }, () => resolve()))
    checkpoint(5, 'trainer')
    const { problem } = await run(['--deployment.num-train-gpus', '2', '--orchestrator.eval.env', '[{ "id": "./missing.mjs" }]'])
    expect(problem).toMatchObject({
      code: 'CONFIG_INVALID',
      exitStatus: 2,
      problems: [
        { code: 'PORT_IN_USE', path: 'inference.server.port', message: expect.stringContaining('18473') },
        { code: 'ENVIRONMENT_INVALID', path: 'orchestrator.eval.env.0.id', message: expect.stringContaining('missing.mjs') },
        { code: 'FEATURE_UNAVAILABLE', path: 'deployment.num_train_gpus' },
        { code: 'OUTPUT_UNUSABLE', hint: expect.stringContaining('--clean-output-dir') },
      ],
    })
    expect(existsSync(out('configs'))).toBe(false)
    expect((await run(['--clean-output-dir'])).problem).toMatchObject({ code: 'PORT_IN_USE' })
    expect(existsSync(out('checkpoints'))).toBe(true)
  })

  it('what the configuration lacks is said with it', async () => {
    checkpoint(5, 'trainer')
    const lacking = new TrilithonError('MODEL_NOT_FOUND', 'there is no model', { hint: 'Make one.' })
    expect((await run([], {}, {}, {}, [lacking])).problem).toMatchObject({
      code: 'CONFIG_INVALID',
      problems: [{ code: 'MODEL_NOT_FOUND' }, { code: 'OUTPUT_UNUSABLE' }],
    })
    expect((await run(['--clean-output-dir'], {}, {}, {}, [lacking])).problem).toBe(lacking)
    expect(existsSync(out('checkpoints'))).toBe(true)
  })

  it.each([18_474, 18_477])('the ports of batches over sockets are among them: %d', async (port) => {
    server = createServer()
    await new Promise<void>((resolve) => server?.listen({ host: '127.0.0.1', port }, () => resolve()))
    const sockets = ['--rollout-transport.type', 'zmq', '--rollout-transport.port', '18474']
    expect((await run(sockets)).problem).toMatchObject({
      ...{ code: 'PORT_IN_USE', path: 'trainer.rollout_transport.port', hint: expect.stringContaining('--rollout-transport.port') },
      message: expect.stringContaining(String(port)),
    })
    // A trainer on made-up data takes no batches.
    expect(await run([...sockets, '--trainer.data.fake.batch-size', '2'])).toMatchObject({ status: 0 })
  })

  it('a used folder is cleaned when that is asked for, unless the user protects it or the run needs what is in it', async () => {
    checkpoint(5, 'trainer')
    const cleaning = await run(['--clean-output-dir'], {}, {}, { NEVER_CLEAN_OUTPUT_DIR: '1' })
    expect(cleaning.problem).toMatchObject({ code: 'OUTPUT_UNUSABLE', message: expect.stringContaining('holds another run') })
    mkdirSync(out('model'))
    writeFileSync(out('model', 'config.json'), '{}')
    expect((await run(['--clean-output-dir', '--model.name', 'out/model'])).problem).toMatchObject({
      code: 'OUTPUT_UNUSABLE',
      message: expect.stringContaining('out/model'),
    })
    expect(await run(['--clean-output-dir'])).toMatchObject({ status: 0 })
    expect(existsSync(out('checkpoints'))).toBe(false)
  })

  it('a resume goes on from the last step that both have, written as that step for every role', async () => {
    for (const step of [2, 4]) checkpoint(step, 'trainer', 'orchestrator')
    checkpoint(6, 'trainer')
    checkpoint(8, 'orchestrator')
    const line = (step: number, key: string) => `{"step":${step},"role":"x","${key}":1,"time/wall":${step + 1}}\n`
    writeFileSync(
      out('metrics.jsonl'),
      [line(3, 'loss'), line(4, 'eval/a/avg@1'), line(4, 'loss'), line(5, 'loss'), '{"step":6,"l'].join(''),
    )
    const { status, text } = await run(['--ckpt.resume-step', '-1', '--max-steps', '9'])
    expect(status).toBe(0)
    expect(text).toContain('going on behind step 4')
    for (const root of ['trainer', 'orchestrator'])
      expect(readFileSync(out('configs', `${root}.toml`), 'utf8')).toMatch(/\[ckpt\]\n(?:[^[]*\n)?resume_step = 4\n/)
    expect(readdirSync(out('checkpoints')).sort()).toEqual(['step_2', 'step_4', 'step_6.unpaired-0'])
    const before = metrics().filter(({ role }) => role === 'x')
    expect(before.map((values) => [values.step, Object.keys(values)[2]])).toEqual([
      [3, 'loss'],
      [4, 'eval/a/avg@1'],
    ])
    // The clock of the run goes on.
    expect(metrics().find(({ role }) => role === 'launcher')['time/wall']).toBeGreaterThan(5)
  })

  // The trainer has nothing to train then, and its last version is none that anybody waits for.
  it.each([
    ['2', 'RESUME_IMPOSSIBLE'],
    ['4', undefined],
  ])('a resume behind step 4 of a run that ends at %s', async (maxSteps, code) => {
    checkpoint(4, 'trainer', 'orchestrator')
    const flags = ['--ckpt.resume-step', '-1', '--max-steps', maxSteps]
    const { problem } = await run(flags, { trainer: { steps: 0 }, orchestrator: { steps: 0 } })
    if (code === undefined) expect(problem).toBeUndefined()
    else expect(problem).toMatchObject({ code, path: 'max_steps', message: expect.stringMatching(/step 4.* max_steps is 2/) })
  })

  it('a resume from a step by its number takes none of the later ones away', async () => {
    for (const step of [2, 4]) checkpoint(step, 'trainer', 'orchestrator')
    const line = '{"step":3,"role":"x","loss":1}\n'
    writeFileSync(out('metrics.jsonl'), line)
    expect((await run(['--ckpt.resume-step', '2', '--max-steps', '9'])).problem).toMatchObject({
      ...{ code: 'RESUME_IMPOSSIBLE', path: 'ckpt.resume_step', message: expect.stringContaining('behind step 2: 4') },
    })
    expect(readFileSync(out('metrics.jsonl'), 'utf8')).toBe(line)
  })

  it('a resume that is impossible lists what there is', async () => {
    checkpoint(2, 'trainer')
    checkpoint(4, 'orchestrator')
    const { problem } = await run(['--ckpt.resume-step', '-1'])
    expect(problem).toMatchObject({
      code: 'RESUME_IMPOSSIBLE',
      exitStatus: 2,
      message: expect.stringMatching(/trainer 2 in .*orchestrator 4 in/),
      details: { trainer: [2], orchestrator: [4] },
    })
    folder.write({ 'out/run_default/rollouts/step_1/train_rollouts.bin': '' })
    expect((await run(['--ckpt.resume-step', '4'])).problem).toMatchObject({ hint: 'Resume from one of: 2.' })
  })
})
