import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TrilithonError } from '@trilithon/core'
import { createModel, nodeFiles, parseModelConfig, saveModel } from '@trilithon/models'
import { createCharTokenizer } from '@trilithon/renderers'
import { liveTensors, write } from '@trilithon/tensor'
import { failingFiles } from '@trilithon/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SftSchema } from '../configuration/sft-schema.ts'
import { tinyModelJson } from '../rl/__fixtures__/tiny-run.ts'
import type { SftEvent } from './sft-event.ts'
import { SftMetrics } from './sft-metrics.ts'
import { runSftHere, type SftSetup } from './sft-run.ts'
import { SftView } from './sft-view.ts'
import { prepareSft } from './start-sft.ts'

const modelJson = {
  model_type: 'qwen3',
  vocab_size: 20,
  hidden_size: 16,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 8,
  intermediate_size: 24,
  num_hidden_layers: 2,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-6,
  rope_theta: 100,
  initializer_range: 0.2,
  tie_word_embeddings: true,
}
let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-sft-'))
  const { files } = createCharTokenizer('abcdefghijklmnop')
  const configText = JSON.stringify(modelJson)
  const model = createModel(parseModelConfig(modelJson, 'config.json'), { seed: 1, configText })
  saveModel(model, join(folder, 'model'), { documents: files })
  model.dispose()
  const rows = Array.from({ length: 40 }, (_, row) => {
    const letters = Array.from({ length: 3 + (row % 4) }, (_, index) => String.fromCharCode(97 + ((row * 5 + index * 3) % 16))).join('')
    return JSON.stringify({ prompt: `${letters}=`, completion: [...letters].reverse().join('') })
  })
  writeFileSync(join(folder, 'train.jsonl'), `${rows.join('\n')}\n`)
})
afterEach(() => rmSync(folder, { recursive: true }))

const textOf = (changes: object) => ({ type: 'sft', name: 'train.jsonl', ...changes })
const configOf = (changes: object = {}) =>
  SftSchema.parse({
    max_steps: 6,
    model: { name: 'model' },
    tokenizer: { name: 'model' },
    data: textOf({ seq_len: 32, batch_size: 3 }),
    optim: { type: 'adamw', lr: 1e-2 },
    scheduler: { type: 'cosine', warmup_steps: 2 },
    ckpt: {},
    output_dir: 'out',
    ...changes,
  })
const setUp = (changes: object = {}): SftSetup => prepareSft({ config: configOf(changes), workingDirectory: folder, environment: {} })

async function run(
  setup: SftSetup,
  options: { isStopped?: () => boolean; listen?: (event: SftEvent) => void; files?: typeof nodeFiles } = {},
) {
  const events: SftEvent[] = []
  await runSftHere({
    setup,
    listener: (event) => {
      events.push(event)
      options.listen?.(event)
    },
    isStopped: options.isStopped ?? (() => false),
    files: options.files ?? nodeFiles,
  })
  return events
}
const lossesOf = (events: readonly SftEvent[]) => events.flatMap((event) => (event.kind === 'step' ? [[event.step, event.loss]] : []))
const bytesOf = (...path: string[]) => readFileSync(join(folder, ...path)).toString('base64')
const fails = (code: TrilithonError['code'], message: RegExp) => expect.objectContaining({ code, message: expect.stringMatching(message) })

describe('a run', () => {
  it('learns, and writes weights that read back, with their tokeniser', async () => {
    const before = liveTensors().tensors
    const losses = lossesOf(await run(setUp({ max_steps: 30 })))
    expect(losses).toHaveLength(30)
    expect(losses.at(-1)?.[1]).toBeLessThan((losses[0]?.[1] ?? 0) * 0.9)
    expect(readdirSync(join(folder, 'out', 'weights', 'step_30'))).toEqual([
      'STABLE',
      'config.json',
      'model.safetensors',
      'tokenizer.json',
      'tokenizer_config.json',
    ])
    expect(liveTensors().tensors).toBe(before)
    // The folder is a model.
    expect(lossesOf(await run(setUp({ model: { name: 'out/weights/step_30' }, output_dir: 'again', max_steps: 1 })))[0]?.[1]).toBeLessThan(
      (losses[1]?.[1] ?? 0) * 0.9,
    )
  })

  it('that stops at a step and goes on equals one that never stopped, bit for bit', async () => {
    const whole = await run(setUp({ output_dir: 'whole' }))
    // The schedule belongs to the whole run, so the first half is stopped rather than short.
    let stop = false
    const first = await run(setUp(), {
      isStopped: () => stop,
      listen: (event) => {
        stop = event.kind === 'step' && event.step === 3
      },
    })
    expect(first.at(-1)).toEqual({ kind: 'ended', step: 3, isInterrupted: true })
    const second = await run(setUp({ ckpt: { resume_step: -1 } }))
    expect([...lossesOf(first), ...lossesOf(second)]).toEqual(lossesOf(whole))
    for (const file of ['model.safetensors', 'progress.json'])
      expect(bytesOf('out', 'checkpoints', 'step_6', file)).toBe(bytesOf('whole', 'checkpoints', 'step_6', file))
    expect(bytesOf('out', 'weights', 'step_6', 'model.safetensors')).toBe(bytesOf('whole', 'weights', 'step_6', 'model.safetensors'))
  })

  it('keeps the checkpoints that it is told to', async () => {
    await run(setUp({ ckpt: { interval: 1, keep_last: 1, keep_interval: 3 }, max_steps: 5 }))
    expect(readdirSync(join(folder, 'out', 'checkpoints'))).toEqual(['step_3', 'step_5'])
    expect(readdirSync(join(folder, 'out', 'weights'))).toEqual(['step_3', 'step_5'])
  })

  it('refuses to go on from a step that others lie behind, and from one that is not there', async () => {
    await run(setUp({ ckpt: { interval: 2 } }))
    await expect(run(setUp({ ckpt: { resume_step: 2 } }))).rejects.toThrow(fails('OUTPUT_UNUSABLE', /4, 6/))
    await expect(run(setUp({ ckpt: { resume_step: 7 } }))).rejects.toThrow(fails('CHECKPOINT_INVALID', /step 7/))
  })

  it('can leave the optimiser and the data behind when it goes on', async () => {
    await run(setUp({ max_steps: 2 }))
    const events = await run(
      setUp({
        max_steps: 2,
        ckpt: { resume_step: -1, skip_optimizer: true, skip_dataloader: true, skip_progress: true, output_dir: 'out' },
        output_dir: 'next',
      }),
    )
    expect(lossesOf(events).map(([step]) => step)).toEqual([1, 2])
  })

  it.each(['sgd', 'sign_sgd', 'muon'])('trains by %s, and goes on from its state', async (type) => {
    const optim = { type, lr: 3e-3 }
    const whole = lossesOf(await run(setUp({ optim, max_steps: 4, scheduler: { type: 'constant' }, output_dir: 'whole' })))
    expect(whole.at(-1)?.[1]).not.toBe(whole[0]?.[1])
    await run(setUp({ optim, max_steps: 2, scheduler: { type: 'constant' } }))
    const rest = lossesOf(await run(setUp({ optim, max_steps: 4, scheduler: { type: 'constant' }, ckpt: { resume_step: 2 } })))
    expect(rest).toEqual(whole.slice(2))
  })

  it('goes on with a frozen indexer, which has no state of the optimiser (known fault 115)', async () => {
    const model = createModel(parseModelConfig(tinyModelJson, 'config.json'), { seed: 1, configText: JSON.stringify(tinyModelJson) })
    saveModel(model, join(folder, 'sparse'), { documents: createCharTokenizer('abcdefghijklmnop').files })
    model.dispose()
    const changes = { model: { name: 'sparse' }, tokenizer: { name: 'sparse' } }
    await run(setUp({ ...changes, max_steps: 2, scheduler: { type: 'constant' } }))
    const again = { ...changes, max_steps: 3, scheduler: { type: 'constant' } }
    expect(lossesOf(await run(setUp({ ...again, ckpt: { resume_step: 2 } })))).toHaveLength(1)
    // An indexer that is to be trained now has states that the checkpoint lacks.
    const thawed = { ...again, model: { name: 'sparse', index_kl_weight: 1 }, ckpt: { resume_step: 3 } }
    await expect(run(setUp(thawed))).rejects.toThrow(fails('CHECKPOINT_INVALID', /indexer.* is missing/))
    expect(lossesOf(await run(setUp({ ...thawed, max_steps: 4, ckpt: { resume_step: 3, skip_optimizer: true } })))).toHaveLength(1)
  })

  it('validates at its interval over all of the data, and on start', async () => {
    const val = { interval: 2, eval_on_start: true, data: textOf({ seq_len: 16, batch_size: 4 }) }
    const events = await run(setUp({ val, max_steps: 4 }))
    const validations = events.flatMap((event) => (event.kind === 'validated' ? [event] : []))
    expect(validations.map(({ step }) => step)).toEqual([0, 2, 4])
    // Every completion and its eos.
    expect(new Set(validations.map(({ tokens }) => tokens))).toEqual(new Set([220]))
    expect(validations[2]?.loss).toBeLessThan(validations[0]?.loss ?? 0)
  })

  it('mixes subsets by their shares', async () => {
    const rows = readFileSync(join(folder, 'train.jsonl'), 'utf8').trim().split('\n')
    for (const [name, part] of [
      ['easy', rows.slice(0, 30)],
      ['hard', rows.slice(30)],
    ] as const) {
      mkdirSync(join(folder, 'data', name), { recursive: true })
      writeFileSync(join(folder, 'data', name, 'train.jsonl'), part.join('\n'))
    }
    const rowsOf = async (changes: object) => {
      const [started] = await run(
        setUp({
          data: textOf({ name: 'data', seq_len: 32, batch_size: 3, subsets: ['easy', 'hard'], ...changes }),
          max_steps: 1,
          ckpt: null,
          clean_output_dir: true,
        }),
      )
      return started?.kind === 'started' ? started.rows : 0
    }
    expect(await rowsOf({})).toBe(40)
    expect(await rowsOf({ probabilities: [0, 1] })).toBe(10)
    expect(await rowsOf({ probabilities: [0.5, 0.5] })).toBeGreaterThan(45)
    await expect(rowsOf({ subsets: ['easy', 'other'] })).rejects.toThrow(fails('DATA_NOT_FOUND', /data\/other/))
    await expect(rowsOf({ probabilities: [0, 0] })).rejects.toThrow(fails('CONFIG_VALUE_CONFLICT', /share 0/))
  })

  it('trains on made-up data without a tokeniser, with layers computed again', async () => {
    rmSync(join(folder, 'model', 'tokenizer.json'))
    const events = await run(
      setUp({
        data: { type: 'fake', seq_len: 16, batch_size: 2, length: 'variable', input_ids: 'random' },
        model: { name: 'model', ac: {} },
      }),
    )
    expect(lossesOf(events)).toHaveLength(6)
  })

  it('skips a step that is not finite, and ends when all are', async () => {
    const model = createModel(parseModelConfig(modelJson, 'config.json'), { seed: 1, configText: JSON.stringify(modelJson) })
    const norm = model.weights.get('model.norm.weight')
    if (norm !== undefined) write(norm.value, new Array(16).fill(3e38))
    saveModel(model, join(folder, 'wild'), { documents: createCharTokenizer('abcdefghijklmnop').files })
    model.dispose()
    const events: SftEvent[] = []
    const setup = setUp({ model: { name: 'wild' }, tokenizer: { name: 'wild' }, max_steps: 50 })
    await expect(run(setup, { listen: (event) => void events.push(event) })).rejects.toThrow(fails('TASK_FAILED', /20 steps in a row/))
    const skipped = events.flatMap((event) => (event.kind === 'skipped' ? [event] : []))
    expect(skipped[0]?.samples.length).toBeGreaterThan(3)
    expect(skipped[0]?.samples[0]).toMatch(/train\.jsonl:\d+$/)
    expect(
      readFileSync(skipped[0]?.path ?? '', 'utf8')
        .trim()
        .split('\n'),
    ).toHaveLength(skipped[0]?.samples.length ?? 0)
  })
})

describe('bad input', () => {
  it('a weight that is no number is named with its file', async () => {
    const model = createModel(parseModelConfig(modelJson, 'config.json'), { seed: 1, configText: JSON.stringify(modelJson) })
    const norm = model.weights.get('model.norm.weight')
    if (norm !== undefined) write(norm.value, [...new Array(15).fill(1), Number.NaN])
    saveModel(model, join(folder, 'broken'), { documents: createCharTokenizer('abcdefghijklmnop').files })
    model.dispose()
    const before = liveTensors().tensors
    await expect(run(setUp({ model: { name: 'broken' } }))).rejects.toThrow(
      fails('CHECKPOINT_INVALID', /broken.*element 15 of model\.norm\.weight is NaN/),
    )
    expect(liveTensors().tensors).toBe(before)
  })

  it.each([
    ['no model', { model: { name: 'nowhere/model' } }, 'MODEL_NOT_FOUND', /nowhere/],
    ['no tokeniser', { tokenizer: { name: 'out' } }, 'MODEL_NOT_FOUND', /tokenizer\.json/],
    ['rows longer than the model has positions', { data: textOf({ seq_len: 65 }) }, 'CONFIG_VALUE_CONFLICT', /64 tokens/],
    ['no data', { data: textOf({ name: 'missing.jsonl', seq_len: 32 }) }, 'DATA_NOT_FOUND', /missing\.jsonl/],
  ] as const)('%s', async (_, changes, code, message) => {
    await expect((async () => run(setUp(changes)))()).rejects.toThrow(fails(code, message))
    expect(liveTensors().tensors).toBe(0)
  })

  it('a tokeniser that is larger than the model', async () => {
    mkdirSync(join(folder, 'other'))
    for (const [name, text] of Object.entries(createCharTokenizer('abcdefghijklmnopqrstuvwxyz').files))
      writeFileSync(join(folder, 'other', name), text)
    await expect(run(setUp({ tokenizer: { name: 'other' } }))).rejects.toThrow(fails('TOKENIZER_INVALID', /30 tokens, and the model 20/))
  })

  it('a disk that fills up during a save leaves the checkpoint before it', async () => {
    await run(setUp({ max_steps: 2 }))
    const before = bytesOf('out', 'checkpoints', 'step_2', 'model.safetensors')
    const setup = setUp({ max_steps: 4, ckpt: { resume_step: 2 } })
    await expect(run(setup, { files: failingFiles(nodeFiles, { failAt: 4, kind: 'ENOSPC' }) })).rejects.toThrow(
      fails('CHECKPOINT_WRITE_FAILED', /the disk is full/),
    )
    expect(bytesOf('out', 'checkpoints', 'step_2', 'model.safetensors')).toBe(before)
    expect(lossesOf(await run(setup))).toHaveLength(2)
  })
})

const stepEvent = (step: number): SftEvent => ({
  kind: 'step',
  step,
  loss: 1.5,
  tokens: 1000,
  gradientNorm: 0.25,
  learningRate: 1e-3,
  seconds: 0.5,
  peakBytes: 2 ** 30,
  metrics: { loss: 1.5, 'entropy/all/mean': 2, 'perf/mfu': 12.34 },
})

describe('what a run shows', () => {
  const started: SftEvent = { kind: 'started', step: 0, maxSteps: 100, parameters: 12, trainable: 10, rows: 3 }
  const shown = (isTTY: boolean, events: readonly SftEvent[]) => {
    let text = ''
    const view = new SftView({
      output: {
        isTTY,
        columns: 200,
        write: (part) => {
          text += part
        },
      },
      json: null,
    })
    for (const event of events) view.show(event)
    view.close()
    return text
  }

  it('is one line that changes on a terminal', () => {
    const text = shown(true, [started, stepEvent(1), stepEvent(2), { kind: 'ended', step: 2, isInterrupted: true }])
    expect(text).toContain(
      'step 2/100  loss 1.5000  2000 tokens/s  ETA 0:49  grad 0.250  lr 1.00e-3  1024 MiB\nInterrupted behind step 2\n',
    )
  })

  it('is a plain line per event elsewhere', () => {
    const lines = shown(false, [started, stepEvent(1), { kind: 'validated', step: 1, loss: 2, tokens: 9, seconds: 0.1 }])
      .trim()
      .split('\n')
    expect(lines).toEqual([
      'Training: 12 parameters, 10 of them trained, 3 rows',
      'Step 1 | 0.50s | Loss 1.5000 | Entropy 2.0000 | Grad. Norm 0.2500 | LR 1.00e-3 | Throughput 2000 tokens/s | ETA 0:50 | MFU 12.3% | Peak Mem. 1.00 GiB',
      'Validation (Step 1) | 0.10s | Loss 2.0000 | 9 tokens',
    ])
  })

  it('is written as metrics, each step once, also after a resume and a torn line', () => {
    const path = join(folder, 'metrics.jsonl')
    const file = new SftMetrics(path)
    for (const event of [started, stepEvent(1), stepEvent(2)]) file.take(event)
    writeFileSync(path, `${readFileSync(path, 'utf8')}{"step":2,"los`)
    new SftMetrics(path).take({ ...started, step: 1 })
    new SftMetrics(path).take(stepEvent(2))
    const lines = readFileSync(path, 'utf8').trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).step)).toEqual([1, 2])
  })
})
