/**
 * Budget: 120 s. Ends a run by SIGKILL at twenty moments, most of them within a save, and goes on each time: no checkpoint is lost, and the bits in the end
 * are those of a run that was left alone. Runs the built command line (dist): the test target builds first.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-kill-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Calls the command line; `killAfterMs`: counted from its first step. */
function call(argv: readonly string[], killAfterMs?: number): Promise<{ status: number | null; err: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [main, ...argv], { cwd: folder, env: { PATH: process.env.PATH, TRILITHON_THREADS: '1' } })
    let err = ''
    let timer: NodeJS.Timeout | undefined
    child.stderr.on('data', (text: Buffer) => {
      err += text.toString()
    })
    child.stdout.on('data', (text: Buffer) => {
      if (killAfterMs === undefined || !text.toString().includes('Step')) return
      timer ??= setTimeout(() => child.kill('SIGKILL'), killAfterMs)
    })
    child.on('close', (status) => {
      clearTimeout(timer)
      resolve({ status, err })
    })
  })
}

const checkpoints = () => {
  const root = join(folder, 'out', 'checkpoints')
  if (!existsSync(root)) return []
  return readdirSync(root).filter((name) => existsSync(join(root, name, 'COMPLETE')))
}
const last = () => Math.max(0, ...checkpoints().map((name) => Number(/^step_(\d+)$/.exec(name)?.[1] ?? 0)))

it('a kill at any moment of a save loses nothing that was saved', { timeout: 120_000 }, async () => {
  const config = {
    model_type: 'qwen3',
    vocab_size: 20,
    hidden_size: 128,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 16,
    intermediate_size: 256,
    num_hidden_layers: 4,
    max_position_embeddings: 64,
    rms_norm_eps: 1e-6,
    rope_theta: 100,
  }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
  expect(await call(['init-model', 'config.json', '--out', 'model'])).toMatchObject({ status: 0 })
  expect(await call(['reverse-text', 'rows', '--out', 'train.jsonl', '--count', '100'])).toMatchObject({ status: 0 })
  const train = ['sft', '--model.name', 'model', '--data.name', 'train.jsonl', '--data.seq-len', '20', '--data.batch-size', '1']
  // A step is far shorter than its save, so most moments lie within one.
  const saving = ['--ckpt.interval', '1', '--ckpt.keep-last', '2', '--optim.lr', '1e-3', '--output-dir', 'out']
  let begun = 0
  for (let moment = 0; moment < 20; moment++) {
    const resume = last() > 0 ? ['--ckpt.resume-step', '-1'] : ['--clean-output-dir']
    const { err } = await call([...train, ...saving, ...resume, '--max-steps', '1000000'], 7 * moment)
    expect(err).toBe('')
    expect(last()).toBeGreaterThanOrEqual(begun)
    begun = last()
  }
  expect(begun).toBeGreaterThan(3)
  const end = ['--max-steps', String(begun + 1)]
  expect(await call([...train, ...saving, '--ckpt.resume-step', '-1', ...end])).toMatchObject({ status: 0, err: '' })
  expect(await call([...train, '--optim.lr', '1e-3', '--output-dir', 'whole', '--ckpt.keep-last', '1', ...end])).toMatchObject({
    status: 0,
  })
  const weights = (run: string) => readFileSync(join(folder, run, 'checkpoints', `step_${begun + 1}`, 'model.safetensors'))
  expect(weights('out').equals(weights('whole'))).toBe(true)
  const steps = readFileSync(join(folder, 'out', 'metrics.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { step: number; loss?: number })
    .flatMap(({ step, loss }) => (loss === undefined ? [] : [step]))
  // The line of a step may be lost with the process that writes it; none is there twice.
  expect(steps).toEqual([...new Set(steps)].sort((a, b) => a - b))
  expect(steps.at(-1)).toBe(begun + 1)
})
