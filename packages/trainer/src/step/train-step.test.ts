import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { MicroBatch } from '@trilithon/core'
import { createModel, type ModelConfig, nodeFiles, parseModelConfig } from '@trilithon/models'
import { createAdamW, liveTensors, type Optimiser, toArray, write } from '@trilithon/tensor'
import { failingFiles, tinyModelJson } from '@trilithon/testing'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Loss } from '../loss/loss.ts'
import { createDefaultLoss, opdLoss, sftLoss } from '../loss/policy-loss.ts'
import { documentMicroBatch } from '../packing/pack-documents.ts'
import { saveSkippedSamples } from './skipped-samples.ts'
import { type TrainStepParts, trainStep } from './train-step.ts'

const config = parseModelConfig(tinyModelJson.qwen3_moe, 'config.json')
const sparseConfig = parseModelConfig(
  { ...tinyModelJson.glm_moe_dsa, num_hidden_layers: 2, index_topk: 3, indexer_types: null },
  'config.json',
)
const documents = Array.from({ length: 7 }, (_, index) => {
  const length = 3 + ((index * 5) % 7)
  const ids = Uint32Array.from({ length }, (_, token) => (index * 7 + token * token * 3 + 1) % 19)
  return { ids, mask: new Uint8Array(length).fill(1, 1 + (index % 2)), where: `rows.jsonl:${index + 1}`, cut: 0 }
})
/** Documents cut into micro-batches of these sizes. */
const cutInto = (...sizes: readonly number[]): MicroBatch[] => {
  let begin = 0
  return sizes.map((size) => {
    const batch = documentMicroBatch([documents.slice(begin, begin + size)], 'fp32')
    begin += size
    return batch
  })
}

type Changes = Partial<TrainStepParts> & { readonly modelConfig?: ModelConfig }
interface Setup extends TrainStepParts {
  end(): void
}
function setUp({ modelConfig = config, ...changes }: Changes = {}): Setup {
  const model = createModel(modelConfig, { seed: 5, indexKlWeight: changes.indexKlWeight ?? 0 })
  const optimiser = createAdamW(model.parameters(), { weightDecay: 0.01, beta1: 0.9, beta2: 0.999 })
  return {
    model,
    optimiser,
    losses: { sft: sftLoss, opd: opdLoss, rl: createDefaultLoss({ dppo_mask_low: 0.2, dppo_mask_high: 0.2, adv_tau: 1, kl_tau: 1e-3 }) },
    maxNorm: 1,
    recompute: false,
    indexKlWeight: 0,
    ...changes,
    end() {
      optimiser.dispose()
      model.dispose()
    },
  }
}
const weightsOf = ({ model }: TrainStepParts) =>
  new Map([...model.parameters()].map(({ name, value }) => [name, (toArray(value) as Float32Array).slice()]))
const stateOf = ({ optimiser }: TrainStepParts) => optimiser.states.map(({ name, tensor }) => [name, toArray(tensor)])
/** Weights after steps over these micro-batches. */
function trained(microBatches: readonly MicroBatch[], steps = 1, changes: Changes = {}) {
  const parts = setUp(changes)
  const reports = Array.from({ length: steps }, (_, version) => trainStep(parts, { microBatches, learningRate: 1e-2, version }))
  const result = { weights: weightsOf(parts), reports }
  parts.end()
  return result
}
/** Gradients, taken by an optimiser that only looks. */
function gradients(microBatches: readonly MicroBatch[], changes: Changes = {}): Float32Array {
  const parts = setUp(changes)
  let all: number[] = []
  const report = trainStep(
    {
      ...parts,
      optimiser: {
        states: [],
        step: () => {
          all = [...parts.model.parameters()].flatMap(({ gradient }) => (gradient === null ? [] : [...(toArray(gradient) as Float32Array)]))
        },
        dispose: () => undefined,
      },
    },
    { microBatches, learningRate: 1, version: 0 },
  )
  parts.end()
  expect(report.skipped).toBeNull()
  return Float32Array.from(all)
}
const norm = (values: ArrayLike<number>) => Math.sqrt(Array.from(values).reduce((sum, value) => sum + value * value, 0))
const distance = (a: Float32Array, b: Float32Array) => norm(a.map((value, index) => value - (b[index] ?? Number.NaN))) / norm(b)

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'trilithon-step-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test.each([
  ['experts', { modelConfig: config }],
  ['sparse attention, its indexer trained', { modelConfig: sparseConfig, indexKlWeight: 0.5 }],
])('any split of a batch into micro-batches gives the same gradient: %s', (_, changes) => {
  const whole = gradients(cutInto(7), changes)
  expect(norm(whole)).toBeGreaterThan(0.1)
  for (const sizes of [
    [1, 6],
    [3, 4],
    [2, 2, 3],
    [1, 1, 1, 1, 1, 1, 1],
  ])
    expect(distance(gradients(cutInto(...sizes), changes), whole)).toBeLessThan(1e-6)
})

test('activation recomputation changes no bit', () => {
  expect(gradients(cutInto(3, 4), { recompute: true })).toEqual(gradients(cutInto(3, 4)))
  const sparse = { modelConfig: sparseConfig, indexKlWeight: 0.5 }
  expect(gradients(cutInto(3, 4), { ...sparse, recompute: true })).toEqual(gradients(cutInto(3, 4), sparse))
})

test("the indexer's loss trains the indexer alone, and a weight of 0 leaves it frozen", () => {
  const weightsAfter = (indexKlWeight: number) =>
    trained(cutInto(7), 1, { modelConfig: sparseConfig, indexKlWeight, maxNorm: null }).weights
  const [frozen, trainedOnce] = [weightsAfter(0), weightsAfter(0.5)]
  const start = setUp({ modelConfig: sparseConfig })
  const before = weightsOf(start)
  start.end()
  let indexers = 0
  for (const [name, values] of before) {
    if (!name.includes('.indexer.')) {
      expect(trainedOnce.get(name), name).toEqual(frozen.get(name))
      continue
    }
    indexers++
    expect(frozen.get(name), name).toEqual(values)
    expect(trainedOnce.get(name), name).not.toEqual(values)
  }
  expect(indexers).toBe(10)
})

test('a repetition has the same bits, weights and metrics', () => {
  const first = trained(cutInto(3, 4), 3)
  expect(trained(cutInto(3, 4), 3)).toEqual(first)
  expect(first.reports.map(({ loss }) => loss)).toEqual([...first.reports.map(({ loss }) => loss)].sort((a, b) => b - a))
})

test('the report has the norm, the loss per trained token, the load of the experts and the rate', () => {
  const batches = cutInto(3, 4)
  const [report] = trained(batches).reports
  const tokens = documents.reduce((sum, { ids }) => sum + ids.length, 0)
  const lossTokens = documents.reduce((sum, { mask }) => sum + mask.reduce((count, flag) => count + flag, 0), 0)
  expect(report).toMatchObject({ skipped: null, tokens, lossTokens, metrics: { 'optim/lr': 1e-2 } })
  expect(report?.gradientNorm).toBeCloseTo(norm(gradients(batches)), 5)
  expect(report?.metrics['optim/grad_norm']).toBe(report?.gradientNorm)
  expect(report?.loss).toBeGreaterThan(1)
  expect(report?.metrics['entropy/all/mean']).toBeGreaterThan(0)
  expect([...(report?.expertLoad.keys() ?? [])]).toEqual([1])
  const load = report?.expertLoad.get(1)
  expect(load?.reduce((sum, count) => sum + count, 0)).toBe(2 * tokens)
  expect(report?.metrics['max_vio/layer_1']).toBeCloseTo((Math.max(...(load ?? [])) * 5) / (2 * tokens) - 1, 12)
})

test('elements without a gradient are counted among all that are trained: those of experts that got no token', () => {
  const parts = setUp()
  const [batch] = cutInto(1)
  if (batch === undefined) throw new Error('no batch')
  let expected = Number.NaN
  const optimiser: Optimiser = {
    ...parts.optimiser,
    step() {
      const trainable = [...parts.model.parameters()].filter(({ isTrainable }) => isTrainable)
      const all = trainable.flatMap(({ gradient, elements }) =>
        gradient === null ? new Array<number>(elements).fill(0) : [...(toArray(gradient) as Float32Array)],
      )
      expected = all.filter((value) => value === 0).length / all.length
    },
  }
  const report = trainStep({ ...parts, optimiser }, { microBatches: [batch], learningRate: 1, version: 0 })
  expect(report.metrics['optim/zero_grad_ratio']).toBe(expected)
  // Rows of the embedding whose token is not there are zero too.
  const idle = [...(report.expertLoad.get(1) ?? [])].filter((count) => count === 0).length
  expect(idle).toBeGreaterThan(0)
  const [experts, unseen] = [idle * 3 * 6 * 12, (19 - new Set(batch.inputIds).size) * 12]
  const elements = [...parts.model.parameters()].reduce((sum, parameter) => sum + parameter.elements, 0)
  expect(expected).toBeGreaterThanOrEqual((experts + unseen) / elements)
  expect(expected).toBeLessThan(0.5)
  const skipped = trainStep(parts, { microBatches: [rlBatch(1)], learningRate: 1, version: 0 })
  expect(skipped.metrics).not.toHaveProperty('optim/zero_grad_ratio')
  parts.end()
})

test('routers are as sure as their scores say, however the batch is cut: of equal scores the chosen have k / E', () => {
  const confidences = (...sizes: readonly number[]) => {
    const [report] = trained(cutInto(...sizes)).reports
    return Object.entries(report?.metrics ?? {}).filter(([name]) => name.startsWith('routing_confidence/'))
  }
  const whole = confidences(7)
  expect(whole.map(([name]) => name)).toEqual(['layer_1', 'mean', 'min', 'max'].map((name) => `routing_confidence/${name}`))
  for (const [index, [, value]] of confidences(2, 2, 3).entries()) expect(value).toBeCloseTo(whole[index]?.[1] ?? Number.NaN, 6)
  for (const [, value] of whole) expect(value).toBeGreaterThan(2 / 5)
  for (const recompute of [false, true]) {
    const parts = setUp({ recompute })
    const gate = parts.model.weights.get('model.layers.1.mlp.gate.weight')
    if (gate !== undefined) write(gate.value, new Float32Array(gate.elements))
    const { metrics } = trainStep(parts, { microBatches: cutInto(3, 4), learningRate: 1, version: 0 })
    expect(metrics['routing_confidence/mean']).toBeCloseTo(2 / 5, 10)
    parts.end()
  }
})

test('clipping scales to the norm and changes nothing below it', () => {
  const seen: number[] = []
  for (const maxNorm of [null, 1e-3, 1e9]) {
    const parts = setUp({ maxNorm })
    const optimiser: Optimiser = { ...parts.optimiser, step: ({ gradientScale = 1 }) => void seen.push(gradientScale) }
    const { gradientNorm } = trainStep({ ...parts, optimiser }, { microBatches: cutInto(7), learningRate: 1, version: 0 })
    if (maxNorm === 1e-3) expect((seen.at(-1) ?? 0) * gradientNorm).toBeCloseTo(1e-3, 8)
    else expect(seen.at(-1)).toBe(1)
    parts.end()
  }
})

const rlBatch = (bad: number) => {
  const [batch] = cutInto(7)
  if (batch === undefined) throw new Error('no batch')
  const logprobs = new Float32Array(batch.inputIds.length).fill(-2.5)
  const begin = batch.sequenceLengths.slice(0, bad).reduce((sum, length) => sum + length, 0)
  logprobs[begin + 2] = Number.NaN
  return { ...batch, trainingMode: 'rl' as const, logprobs, advantages: new Float32Array(logprobs.length).fill(1) }
}

test('a NaN in a log-probability skips the step, changes nothing, and the sample is saved and named', () => {
  const parts = setUp()
  const before = { weights: weightsOf(parts), state: stateOf(parts) }
  const { skipped } = trainStep(parts, { microBatches: [rlBatch(2)], learningRate: 1e-2, version: 4 })
  expect(skipped).toMatchObject({ reason: 'the loss is not finite', samples: [{ id: 'rows.jsonl:3' }] })
  expect({ weights: weightsOf(parts), state: stateOf(parts) }).toEqual(before)
  const path = saveSkippedSamples(nodeFiles, folder, 4, skipped?.reason ?? '', skipped?.samples ?? [])
  expect(path).toBe(join(folder, 'skipped', 'step_4.jsonl'))
  const [line, ...others] = readFileSync(path, 'utf8').trim().split('\n')
  expect(others).toEqual([])
  const sample = JSON.parse(line ?? '')
  expect(sample).toMatchObject({ id: 'rows.jsonl:3', ids: [...(documents[2]?.ids ?? [])] })
  expect(sample.logprobs[2]).toBe('NaN')
  const full = failingFiles(nodeFiles, { failAt: 3, kind: 'ENOSPC' })
  expect(() => saveSkippedSamples(full, folder, 5, '', skipped?.samples ?? [])).toThrow(
    expect.objectContaining({ code: 'CHECKPOINT_WRITE_FAILED' }),
  )
  parts.end()
})

test('a NaN in a weight skips the step', () => {
  const parts = setUp()
  const [first] = parts.model.parameters()
  const values = toArray(first?.value as never) as Float32Array
  values.fill(Number.NaN)
  write(first?.value as never, values)
  const { skipped } = trainStep(parts, { microBatches: cutInto(3, 4), learningRate: 1e-2, version: 0 })
  expect(skipped?.samples).toHaveLength(7)
  parts.end()
})

test('a gradient that is not finite under a finite loss skips the step and names the micro-batch', () => {
  const huge: Loss = (inputs) => {
    const loss = sftLoss(inputs)
    return inputs.mask.length === 8 ? { ...loss, gradients: loss.gradients.map((value) => value * 1e39) } : loss
  }
  const parts = setUp({ losses: { sft: huge, rl: huge, opd: huge } })
  const batches = cutInto(1, 1, 1, 1, 1, 1, 1)
  expect(documents.filter(({ ids }) => ids.length === 8).map(({ where }) => where)).toEqual(['rows.jsonl:2'])
  const before = weightsOf(parts)
  const { skipped } = trainStep(parts, { microBatches: batches, learningRate: 1e-2, version: 0 })
  expect(skipped).toMatchObject({ reason: 'a gradient is not finite', samples: [{ id: 'rows.jsonl:2' }] })
  expect(weightsOf(parts)).toEqual(before)
  parts.end()
})

test('an optimiser state is there for trained weights only, and a frozen one is not touched', () => {
  const parts = setUp()
  const frozen = [...parts.model.parameters()].filter(({ isTrainable }) => !isTrainable).map(({ name }) => name)
  for (const { name } of parts.optimiser.states) expect(frozen).not.toContain(name.replace(/^adamw\.\w+\./, ''))
  parts.end()
})

test('a step leaves no tensor behind, whether it is made, skipped or aborted', () => {
  const parts = setUp()
  const { tensors, bytes } = liveTensors()
  const run = (microBatches: readonly MicroBatch[]) => trainStep(parts, { microBatches, learningRate: 1e-2, version: 0 })
  for (let step = 0; step < 3; step++) run(cutInto(3, 4))
  run([rlBatch(1)])
  const [first, second] = cutInto(3, 4) as [MicroBatch, MicroBatch]
  expect(() => run([first, { ...second, inputIds: second.inputIds.map(() => 99) }])).toThrow(/token ids from 0 to 18/)
  expect(liveTensors()).toMatchObject({ tensors, bytes })
  parts.end()
})
