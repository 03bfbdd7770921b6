import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sample, TrilithonError } from '@trilithon/core'
import { loadModel, nodeFiles } from '@trilithon/models'
import { liveTensors, toArray } from '@trilithon/tensor'
import { failingFiles } from '@trilithon/testing'
import { openWeights } from '@trilithon/transport'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sampleAnswers } from './__fixtures__/sample-answers.ts'
import { makeTinyFolder, tinySetup } from './__fixtures__/tiny-run.ts'
import { createRlTrainer, type RlTrainer } from './create-rl-trainer.ts'
import { fakeBatch } from './fake-batches.ts'
import type { RlEvent } from './rl-event.ts'
import { rlFolders } from './rl-setup.ts'

let folder = ''
beforeEach(() => {
  folder = makeTinyFolder()
})
afterEach(() => {
  rmSync(folder, { recursive: true })
  expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 })
})

const prompts = [
  [1, 5, 9],
  [2, 4, 7, 11, 13],
  [3, 3],
]
const fails = (code: TrilithonError['code'], message: RegExp) => expect.objectContaining({ code, message: expect.stringMatching(message) })
/** Samples that the trainer's own weights make, as an engine would that serves them. */
const sampled = ({ model, version }: Pick<RlTrainer, 'model' | 'version'>, changes: Partial<Sample> = {}) =>
  sampleAnswers({
    prompts,
    policyAt: () => ({ model, version }),
    tokens: 6,
    temperature: 0.7,
    seed: version,
    idOf: (index) => `v${version}-${'x'.repeat(index)}`,
  }).map((sample) => ({ ...sample, ...changes }))
const made = (step: number) => fakeBatch(step, { batchSize: 4, varies: true, seqLen: 24, vocabSize: 20, profile: 'fp32' })

async function withTrainer<T>(
  changes: object,
  use: (trainer: RlTrainer, events: RlEvent[]) => Promise<T>,
  more: { files?: typeof nodeFiles; listen?: (event: RlEvent) => void } = {},
): Promise<T> {
  const events: RlEvent[] = []
  const trainer = await createRlTrainer({
    setup: tinySetup(folder, changes),
    listener: (event) => {
      events.push(event)
      more.listen?.(event)
    },
    files: more.files ?? nodeFiles,
  })
  try {
    return await use(trainer, events)
  } finally {
    trainer.dispose()
  }
}
/** Trains made-up batches up to a version, as a run does. */
const trainTo = (last: number, changes: object = {}, more: Parameters<typeof withTrainer>[2] = {}) =>
  withTrainer(
    changes,
    async (trainer, events) => {
      while (trainer.version < last) await trainer.step(made(trainer.version))
      trainer.finish(!trainer.isFinished)
      return events
    },
    more,
  )
const metricsOf = (events: readonly RlEvent[]) => events.flatMap((event) => (event.kind === 'step' ? [event.metrics] : []))
const bytesOf = (...path: string[]) => readFileSync(join(folder, ...path)).toString('base64')

describe('a step', () => {
  it('agrees with the sampler bit for bit where both computed with the same weights', async () => {
    await withTrainer({}, async (trainer, events) => {
      for (let step = 0; step < 4; step++) await trainer.step({ step, samples: sampled(trainer) })
      for (const metrics of metricsOf(events)) {
        expect(metrics).toMatchObject({ 'mismatch_kl/exact/max': 0, 'tokens/exact': 18, 'tokens/lag_0': 18, 'lag/max': 0 })
        expect(metrics['mismatch_kl/all/max']).toBe(0)
      }
    })
  })

  it('tells the mismatch of older tokens by their lag, also of new tokens behind old keys', async () => {
    const old = loadModel(join(folder, 'model')).model
    await withTrainer({}, async (trainer, events) => {
      await trainer.step({ step: 0, samples: sampled(trainer) })
      const current = { model: trainer.model, version: 1 }
      const mixed = sampleAnswers({
        prompts,
        policyAt: (place) => (place < 2 ? { model: old, version: 0 } : current),
        tokens: 6,
        temperature: 1,
        seed: 3,
        idOf: (index) => `mixed-${index}`,
      })
      const fresh = sampled(trainer)
      await trainer.step({ step: 1, samples: [...mixed, ...fresh] })
      const metrics = metricsOf(events)[1]
      expect(metrics).toMatchObject({ 'tokens/exact': 18, 'mismatch_kl/exact/max': 0, 'tokens/lag_1': 18, 'lag/max': 1, 'lag/mean': 0.5 })
      expect(metrics?.['mismatch_kl/lag_0/max']).toBe(0)
      expect(metrics?.['mismatch_kl/lag_1/mean']).toBeGreaterThan(1e-7)
    })
    old.dispose()
  })

  it('publishes the weights that it leaves, every one with its bits, and keeps two versions', async () => {
    await withTrainer({}, async (trainer) => {
      const { broadcasts } = rlFolders(tinySetup(folder, { ckpt: { resume_step: 0 } }))
      expect(existsSync(join(broadcasts, 'step_0'))).toBe(false)
      for (let step = 0; step < 3; step++) await trainer.step(made(step))
      expect(readdirSync(broadcasts)).toEqual(['step_2', 'step_3'])
      const published = openWeights(join(broadcasts, 'step_3'))
      expect(published.manifest).toMatchObject({ version: 3, profile: 'fp32' })
      expect(published.manifest.tensors.map(({ name }) => name)).toEqual([...trainer.model.weights.keys()])
      for (const [name, { value }] of trainer.model.weights) {
        const values = new Float32Array(value.elements)
        published.verify(name)
        published.read(name, 0, values)
        expect(values, name).toEqual(Float32Array.from(toArray(value) as Float32Array))
      }
      published.release()
    })
  })

  it('that is not finite has a version too, of the same bits, and its sample is named', async () => {
    await withTrainer({}, async (trainer, events) => {
      const [first, ...others] = made(0).samples as [Sample, ...Sample[]]
      const weights = () => [...trainer.model.weights.values()].map(({ value }) => toArray(value))
      const before = weights()
      const report = await trainer.step({ step: 0, samples: [{ ...first, logprobs: first.logprobs.map(() => Number.NaN) }, ...others] })
      expect(report.skipped?.samples).toMatchObject([{ id: first.id }])
      expect(weights()).toEqual(before)
      expect(trainer.version).toBe(1)
      expect(events).toContainEqual(expect.objectContaining({ kind: 'skipped', step: 0, samples: [first.id] }))
      expect(events).toContainEqual(expect.objectContaining({ kind: 'published', version: 1 }))
      expect(metricsOf(events)[0]).toMatchObject({ 'progress/skipped_steps': 1 })
    })
  })

  it('ignores the experts that an engine chose: without replay the trainer chooses', async () => {
    const losses = []
    for (const data of [new Uint8Array(2 * 2), undefined])
      losses.push(
        await withTrainer({ ckpt: null, output_dir: `out-${losses.length}` }, async (trainer) => {
          const samples = sampled(trainer).map((sample) => ({
            ...sample,
            ...(data === undefined ? {} : { routedExperts: { data, shape: [2, 1, 2], dtype: 'uint8' as const } }),
          }))
          return (await trainer.step({ step: 0, samples })).loss
        }),
      )
    expect(losses[0]).toBe(losses[1])
  })

  it('uses the loss, the schedule and the recomputation of its configuration', async () => {
    const lossOf = (changes: object, name: string) =>
      withTrainer({ ckpt: null, output_dir: name, ...changes }, async (trainer, events) => {
        const samples = made(0).samples.map((sample) => ({ ...sample, logprobs: sample.logprobs.map((value) => value + 1) }))
        const { loss } = await trainer.step({ step: 0, samples })
        return { loss, rate: metricsOf(events)[0]?.['optim/lr'] }
      })
    const plain = await lossOf({}, 'a')
    expect(plain.rate).toBe(1e-2)
    expect(await lossOf({ model: { name: 'model', seq_len: 32, ac: {} } }, 'b')).toEqual(plain)
    expect((await lossOf({ loss: { type: 'ipo', ipo_threshold: 0 } }, 'c')).loss).not.toBe(plain.loss)
    expect((await lossOf({ loss: { type: 'default', kl_tau: 1 } }, 'd')).loss).not.toBe(plain.loss)
    expect((await lossOf({ scheduler: { type: 'linear', warmup_steps: 2, decay_steps: 2 } }, 'e')).rate).toBeLessThan(1e-8)
    writeFileSync(
      join(folder, 'loss.mjs'),
      'export const mine = ({ mask }) => ({ losses: [...mask].map((flag) => flag * 7), gradients: [...mask].map(() => 0), metrics: {} })\n',
    )
    expect((await lossOf({ loss: { type: 'custom', import_path: './loss.mjs#mine' } }, 'f')).loss).toBeCloseTo(7, 9)
  })
})

describe('what is refused changes nothing', () => {
  it.each([
    ['a step that was trained', (step: number) => made(step - 1), 'ROLLOUTS_INVALID', /batch 0 came where batch 1 is due/],
    ['a step that is too far', (step: number) => made(step + 1), 'ROLLOUTS_INVALID', /batch 2 came where batch 1 is due/],
    [
      'a sample that was trained',
      (step: number) => ({ step, samples: made(step - 1).samples }),
      'SAMPLE_INVALID',
      /fake-0-0: it was trained in step 0/,
    ],
    ['an empty batch', (step: number) => ({ step, samples: [] }), 'SAMPLE_INVALID', /empty/],
  ] as const)('%s', async (_, batch, code, message) => {
    const whole = await withTrainer({ output_dir: 'whole' }, async (trainer) => {
      await trainer.step(made(0))
      return (await trainer.step(made(1))).loss
    })
    await withTrainer({}, async (trainer) => {
      await trainer.step(made(0))
      await expect(trainer.step(batch(1))).rejects.toThrow(fails(code, message))
      expect(trainer.version).toBe(1)
      expect((await trainer.step(made(1))).loss).toBe(whole)
    })
  })
})

// Known faults 16 and 17: the last version is published like every other, once, however short the run.
it.each([1, 2, 3])('a run of %i steps publishes each version once, the last one too, fresh or resumed at every step', async (last) => {
  for (let first = 0; first <= last; first++) {
    const output_dir = `run-${first}`
    const versionsOf = (events: readonly RlEvent[]) => events.flatMap((event) => (event.kind === 'published' ? [event.version] : []))
    const upTo = (begin: number, end: number) => Array.from({ length: end - begin + 1 }, (_, index) => begin + index)
    if (first > 0) expect(versionsOf(await trainTo(first, { output_dir, max_steps: last }))).toEqual(upTo(1, first))
    const events = await trainTo(last, { output_dir, max_steps: last, ckpt: first > 0 ? { resume_step: first } : {} })
    expect(versionsOf(events)).toEqual(upTo(Math.max(1, first), last))
    expect(events.at(-1)).toEqual({ kind: 'ended', step: last, isInterrupted: false })
    openWeights(join(folder, output_dir, 'run_default', 'broadcasts', `step_${last}`)).release()
  }
})

describe('a run that goes on', () => {
  it('from a checkpoint equals one that never stopped, bit for bit, and publishes what it starts with', async () => {
    const whole = await trainTo(6, { output_dir: 'whole' })
    const first = await trainTo(3)
    expect(first.at(-1)).toEqual({ kind: 'ended', step: 3, isInterrupted: true })
    const second = await trainTo(6, { ckpt: { resume_step: -1 } })
    expect(second.slice(0, 2)).toMatchObject([
      { kind: 'started', step: 3 },
      { kind: 'published', version: 3 },
    ])
    const curve = (events: readonly RlEvent[]) => metricsOf(events).map((metrics) => [metrics['loss/mean'], metrics['optim/grad_norm']])
    expect([...curve(first), ...curve(second)]).toEqual(curve(whole))
    for (const file of ['model.safetensors', 'progress.json'])
      expect(bytesOf('out', 'checkpoints', 'step_6', 'trainer', file)).toBe(bytesOf('whole', 'checkpoints', 'step_6', 'trainer', file))
    expect(bytesOf('out', 'weights', 'step_6', 'model.safetensors')).toBe(bytesOf('whole', 'weights', 'step_6', 'model.safetensors'))
    // The last version is there for others when the trainer has gone.
    expect(openWeights(join(folder, 'out', 'run_default', 'broadcasts', 'step_6')).manifest.version).toBe(6)
  })

  it('remembers which samples were trained', async () => {
    await trainTo(3)
    await withTrainer({ ckpt: { resume_step: 3 } }, async (trainer) => {
      await expect(trainer.step({ step: 3, samples: made(1).samples })).rejects.toThrow(fails('SAMPLE_INVALID', /trained in step 1/))
    })
    await withTrainer({ ckpt: { resume_step: 3, skip_dataloader: true } }, async (trainer) => {
      expect((await trainer.step({ step: 3, samples: made(1).samples })).skipped).toBeNull()
    })
  })

  it('from a crash between publication and checkpoint trains the same batch again, to the same version', async () => {
    const whole = await trainTo(3, { output_dir: 'whole', max_steps: 3 })
    const crash = new Error('the process is gone')
    let published = 0
    const listen = (event: RlEvent) => {
      if (event.kind === 'published' && ++published === 2) throw crash
    }
    await expect(trainTo(3, { ckpt: { interval: 1 }, max_steps: 3 }, { listen })).rejects.toThrow(crash)
    const { broadcasts } = rlFolders(tinySetup(folder, { ckpt: { resume_step: 1 } }))
    expect(readdirSync(join(folder, 'out', 'checkpoints'))).toEqual(['step_1'])
    const second = await trainTo(3, { ckpt: { resume_step: -1 }, max_steps: 3 })
    expect(metricsOf(second).map((metrics) => metrics['loss/mean'])).toEqual(
      metricsOf(whole)
        .slice(1)
        .map((metrics) => metrics['loss/mean']),
    )
    const checksums = (path: string) => openWeights(path).manifest.tensors.map(({ checksum }) => checksum)
    expect(checksums(join(broadcasts, 'step_3'))).toEqual(checksums(join(folder, 'whole', 'run_default', 'broadcasts', 'step_3')))
  })

  it('from before other weights replaces them: they may be of other batches', async () => {
    await trainTo(3, { ckpt: { interval: 2 } })
    const given = bytesOf('out', 'weights', 'step_3', 'model.safetensors')
    rmSync(join(folder, 'out', 'checkpoints', 'step_3'), { recursive: true })
    await withTrainer({ ckpt: { resume_step: 2 } }, async (trainer) => {
      await trainer.step({
        step: 2,
        samples: made(7).samples.map((sample) => ({
          ...sample,
          versions: sample.versions.map(() => 2),
          contextVersionsMin: sample.versions.map(() => 2),
        })),
      })
      trainer.finish(true)
    })
    expect(bytesOf('out', 'weights', 'step_3', 'model.safetensors')).not.toBe(given)
  })

  it('trains indexers where it is told to, and has their state', async () => {
    const model = { name: 'model', seq_len: 32, index_kl_weight: 1 }
    const whole = await trainTo(4, { model, max_steps: 4, output_dir: 'whole' })
    expect(metricsOf(whole)[0]?.['index_kl/mean']).toBeGreaterThan(0)
    await trainTo(2, { model, max_steps: 4 })
    await trainTo(4, { model, max_steps: 4, ckpt: { resume_step: 2 } })
    expect(bytesOf('out', 'weights', 'step_4', 'model.safetensors')).toBe(bytesOf('whole', 'weights', 'step_4', 'model.safetensors'))
  })
})

describe('checkpoints', () => {
  it('are written at the interval and at the end, and kept as told, with the documents of the model', async () => {
    await trainTo(5, {
      max_steps: 5,
      ckpt: { interval: 1, keep_last: 1, keep_interval: 3 },
      tokenizer: { name: 'model', chat_template: '{{ messages }}' },
    })
    expect(readdirSync(join(folder, 'out', 'checkpoints'))).toEqual(['step_3', 'step_5'])
    expect(readdirSync(join(folder, 'out', 'weights'))).toEqual(['step_3', 'step_5'])
    expect(readdirSync(join(folder, 'out', 'weights', 'step_5'))).toEqual([
      'STABLE',
      'chat_template.jinja',
      'config.json',
      'model.safetensors',
      'tokenizer.json',
      'tokenizer_config.json',
    ])
    expect(readFileSync(join(folder, 'out', 'weights', 'step_5', 'chat_template.jinja'), 'utf8')).toBe('{{ messages }}')
    // The folder is a model.
    expect(await trainTo(1, { max_steps: 1, model: { name: 'out/weights/step_5', seq_len: 32 }, output_dir: 'next' })).toHaveLength(6)
  })

  it('that meet a full disk leave the one before, and the run goes on from there', async () => {
    await trainTo(2, { max_steps: 2 })
    const changes = { max_steps: 4, ckpt: { resume_step: 2 } }
    await expect(trainTo(4, changes, { files: failingFiles(nodeFiles, { failAt: 4, kind: 'ENOSPC' }) })).rejects.toThrow(
      fails('CHECKPOINT_WRITE_FAILED', /the disk is full/),
    )
    expect(metricsOf(await trainTo(4, changes))).toHaveLength(2)
  })
})

describe('bad input', () => {
  it.each([
    ['no model', { model: { name: 'nowhere/model' } }, 'MODEL_NOT_FOUND', /nowhere/],
    ['no tokeniser', { tokenizer: { name: 'nowhere/tokenizer' } }, 'MODEL_NOT_FOUND', /tokenizer\.json/],
    ['nothing to resume from', { ckpt: { resume_step: -1 } }, 'CHECKPOINT_INVALID', /no complete checkpoint/],
    ['a loss that is not there', { loss: { type: 'custom', import_path: './none.mjs#loss' } }, 'LOSS_INVALID', /none\.mjs/],
  ] as const)('%s', async (_, changes, code, message) => {
    await expect((async () => trainTo(1, changes))()).rejects.toThrow(fails(code, message))
  })

  it('the folder of another run', async () => {
    await trainTo(1, { ckpt: null, max_steps: 1 })
    await expect((async () => trainTo(1))()).rejects.toThrow(fails('OUTPUT_UNUSABLE', /holds another run.*broadcasts/))
    await expect((async () => trainTo(1, { clean_output_dir: true, output_dir: '.' }))()).rejects.toThrow(
      fails('OUTPUT_UNUSABLE', /which the run needs/),
    )
    expect(metricsOf(await trainTo(1, { clean_output_dir: true }))).toHaveLength(1)
  })
})
