/** Trains with the built command line (dist) in processes of their own: the test target builds first. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCommandLine } from '../src/run-command-line.ts'

const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const example = fileURLToPath(new URL('../../../examples/reverse-text/config.json', import.meta.url))
let folder = ''

/** In this process: commands without a training thread. */
async function run(...argv: readonly string[]) {
  const written = { out: '', err: '' }
  const output = (key: 'out' | 'err') => ({
    write: (text: string) => {
      written[key] += text
    },
  })
  const status = await runCommandLine(argv, { workingDirectory: folder, environment: {}, stdout: output('out'), stderr: output('err') })
  return { status, ...written }
}

interface Ended {
  readonly status: number | null
  readonly out: string
  readonly err: string
  /** From the signal to the end. */
  readonly stopSeconds: number
}

/** As a process; `stopAt`: gets SIGINT when its output holds this. */
function start(argv: readonly string[], stopAt?: string): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...argv], { cwd: folder, env: { PATH: process.env.PATH, TRILITHON_THREADS: '1' } })
    let [out, err, stopped] = ['', '', 0]
    child.stderr.on('data', (text: Buffer) => {
      err += text.toString()
    })
    child.stdout.on('data', (text: Buffer) => {
      out += text.toString()
      if (stopAt === undefined || stopped > 0 || !out.includes(stopAt)) return
      stopped = performance.now()
      child.kill('SIGINT')
    })
    child.on('close', (status) => resolve({ status, out, err, stopSeconds: (performance.now() - stopped) / 1000 }))
  })
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-training-'))
  writeFileSync(
    join(folder, 'sft.toml'),
    `max_steps = 4
[model]
name = "model"
index_kl_weight = 1.0
[data]
name = "train.jsonl"
seq_len = 64
batch_size = 2
[optim]
lr = 1e-3
[ckpt]
`,
  )
  expect(await run('init-model', example, '--seed', '3', '--out', 'model')).toMatchObject({
    status: 0,
    out: 'wrote model: glm_moe_dsa, 342312 parameters, 20 tokens, seed 3\n',
  })
  expect(await run('reverse-text', 'rows', '--out', 'train.jsonl', '--count', '200', '--noise', '0.5')).toMatchObject({ status: 0 })
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('init-model', () => {
  it('writes a folder that others read, with the same bits for the same seed', async () => {
    expect(readdirSync(join(folder, 'model'))).toEqual(['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'])
    await run('init-model', example, '--seed', '3', '--out', 'again', '--tokenizer', 'model')
    // Buffers are compared as such: a matcher would take seconds.
    const weights = (name: string) => readFileSync(join(folder, name, 'model.safetensors'))
    expect(weights('again').equals(weights('model'))).toBe(true)
    expect(readFileSync(join(folder, 'again/config.json'), 'utf8')).toBe(readFileSync(example, 'utf8'))
    await run('init-model', example, '--seed', '4', '--out', 'other')
    expect(weights('other').equals(weights('model'))).toBe(false)
    await run('init-model', example, '--seed', '3', '--init', 'fan', '--out', 'fan')
    expect(weights('fan').equals(weights('model'))).toBe(false)
  })

  it.each([
    [['nowhere.json', '--out', 'x'], 'MODEL_NOT_FOUND'],
    [['train.jsonl', '--out', 'x'], 'MODEL_CONFIG_INVALID'],
    [['model/tokenizer.json', '--out', 'x'], 'MODEL_UNSUPPORTED'],
    [[example, '--out', 'model'], 'OUTPUT_UNUSABLE'],
    [[example, '--out', 'x', '--seed', '1.5'], 'USAGE_INVALID'],
    [[example, '--out', 'x', '--init', 'xavier'], 'USAGE_INVALID'],
    [[example, '--out', 'x', '--alphabet', 'abcdefghijklmnopqrstuvwxyz'], 'TOKENIZER_INVALID'],
    [[example, '--out', 'x', '--tokenizer', 'nowhere'], 'TOKENIZER_INVALID'],
  ] as const)('%j is refused with %s, and nothing is written', async (argv, code) => {
    const { status, err } = await run('init-model', ...argv)
    expect(status).toBe(2)
    expect(err).toContain(code)
    expect(existsSync(join(folder, 'x'))).toBe(false)
  })

  it('explains itself', async () => {
    expect((await run('init-model', '--help')).out).toContain('--tokenizer')
    expect((await run('reverse-text', 'measure', '--help')).out).toContain('--temperature')
  })
})

describe('reverse-text', () => {
  it('measures a mean reward that depends on the seed alone', async () => {
    const measure = async (...more: string[]) => {
      const { out } = await run('reverse-text', 'measure', 'model', '--count', '100', '--json', ...more)
      return JSON.parse(out) as { reward: number; standard_error: number; mean_length: number }
    }
    const { reward, standard_error: error, mean_length: length } = await measure()
    expect(reward).toBeGreaterThan(0.1)
    expect(reward).toBeLessThan(0.3)
    expect([error > 0, length > 3, length <= 9]).toEqual([true, true, true])
    expect(await measure()).toMatchObject({ reward, standard_error: error })
    expect((await measure('--seed', '1')).reward).not.toBe(reward)
  })

  it.each([
    [['rows', '--out', 'x.jsonl', '--noise', '2'], '--noise'],
    [['rows', '--out', 'x.jsonl', '--count', '0'], '--count'],
    [['measure', 'model', '--split', 'test'], '--split'],
    [['measure', 'nowhere'], 'MODEL_NOT_FOUND'],
  ] as const)('%j is refused', async (argv, text) => {
    const { status, err } = await run('reverse-text', ...argv)
    expect(status).toBe(2)
    expect(err).toContain(text)
  })
})

describe('sft', () => {
  it('trains, writes what it says, and does not start over it', async () => {
    const { status, out, err } = await start(['sft', '@', 'sft.toml', '--output-dir', 'out'])
    expect([status, err]).toEqual([0, ''])
    expect(
      out.split('\n').map((line) =>
        line
          .split(/[ |:]+/)
          .slice(0, 2)
          .join(' '),
      ),
    ).toEqual(['Training 342312', 'Step 1', 'Step 2', 'Step 3', 'Step 4', 'Saved step', 'Done 4', ''])
    expect(readdirSync(join(folder, 'out')).sort()).toEqual(['checkpoints', 'configs', 'metrics.jsonl', 'weights'])
    const lines = readFileSync(join(folder, 'out/metrics.jsonl'), 'utf8').trim().split('\n')
    const metrics = lines.map((line) => JSON.parse(line))
    expect(metrics.map(({ step }) => step)).toEqual([1, 2, 3, 4, 4])
    for (const key of [
      'loss',
      'entropy/all/mean',
      'optim/grad_norm',
      'optim/lr',
      'progress/tokens',
      'max_vio/layer_1',
      'index_kl/mean',
      'perf/peak_memory',
      'perf/mfu',
      'routing_confidence/mean',
      'optim/zero_grad_ratio',
      'system/ckpt_disk_free_ratio',
    ])
      expect(metrics[0]).toHaveProperty([key], expect.any(Number))
    const again = await start(['sft', '@', 'sft.toml', '--output-dir', 'out'])
    expect(again).toMatchObject({ status: 2, out: '' })
    expect(again.err).toContain('OUTPUT_UNUSABLE')
    expect(readFileSync(join(folder, 'out/metrics.jsonl'), 'utf8').trim().split('\n')).toEqual(lines)
  })

  it('ends by Ctrl-C within a second with 130 and a checkpoint, and goes on to the bits of a run that never stopped', async () => {
    const long = ['sft', '@', 'sft.toml', '--max-steps', '1000000', '--output-dir', 'stopped']
    const { status, out, stopSeconds } = await start(long, 'Step 3 ')
    expect(status).toBe(130)
    expect(out).toMatch(/Saved step (\d+) .*\nInterrupted behind step \1\n$/)
    expect(stopSeconds).toBeLessThan(5)
    const behind = Number(/Interrupted behind step (\d+)/.exec(out)?.[1])
    const steps = ['--max-steps', String(behind + 2)]
    await start(['sft', '@', 'sft.toml', ...steps, '--output-dir', 'stopped', '--ckpt.resume-step', '-1'])
    await start(['sft', '@', 'sft.toml', ...steps, '--output-dir', 'whole'])
    const weights = (run: string) => readFileSync(join(folder, run, 'weights', `step_${behind + 2}`, 'model.safetensors'))
    expect(weights('stopped').equals(weights('whole'))).toBe(true)
  })

  it('reports what a real start lacks, and errors of the training thread, without a stack', async () => {
    const missing = await start(['sft', '@', 'sft.toml', '--output-dir', 'x', '--data.name', 'nowhere.jsonl'])
    expect(missing).toMatchObject({ status: 2, out: '' })
    expect(missing.err).toContain('DATA_NOT_FOUND')
    const unbuilt = await run('sft', '@', 'sft.toml', '--data.pack-function', 'stack', '--data.seq-len', '256')
    expect(unbuilt.status).toBe(3)
    expect(unbuilt.err).toContain('FEATURE_UNAVAILABLE')
    for (const { err } of [missing, unbuilt]) expect(err).not.toMatch(/\n\s+at /)
  })
})

describe('trainer', () => {
  it('trains by reinforcement, on made-up batches where it is measured, and tells what a start lacks', async () => {
    writeFileSync(
      join(folder, 'trainer.toml'),
      '[model]\nname = "model"\nseq_len = 64\n[data.fake]\nbatch_size = 2\n[bench]\noutput_json = "bench.json"\n',
    )
    const { status, out } = await start(['trainer', '@', 'trainer.toml', '--output-dir', 'rl'])
    expect([status, out.match(/SUCCESS \(trainer\): Step \d \| .* \| Loss -?\d+\.\d{4} \| /g)?.length]).toEqual([0, 4])
    expect(JSON.parse(readFileSync(join(folder, 'bench.json'), 'utf8'))).toMatchObject({ steps: 3 })
    expect(readdirSync(join(folder, 'rl')).sort()).toEqual(['configs', 'metrics', 'run_default'])
    expect((await start(['trainer', '@', 'trainer.toml', '--output-dir', 'rl'])).err).toContain('OUTPUT_UNUSABLE')
    const unbuilt = await run('trainer', '@', 'trainer.toml', '--output-dir', 'x', '--enable-token-export')
    expect(unbuilt.err).toMatch(/FEATURE_UNAVAILABLE.*\n.*Token export is not built yet/)
  })
})
