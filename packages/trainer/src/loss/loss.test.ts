import { fileURLToPath } from 'node:url'
import type { MicroBatch, Sample, TrainingMode } from '@trilithon/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { prepareBatch } from '../packing/prepare-batch.ts'
import { createLosses } from './create-losses.ts'
import { loadCustomLoss } from './custom-loss.ts'
import type { Loss, LossInputs } from './loss.ts'
import { LossMetrics, summarise } from './loss-metrics.ts'
import { countLossTokens, lossDenominator, microBatchLoss } from './micro-batch-loss.ts'
import { createDefaultLoss, createIpoLoss, mismatchKl, opdLoss, sftLoss } from './policy-loss.ts'

/** Eight tokens; the seventh is not trained. Sums below were made apart from this code, from the formulas of the specification. */
const pi = [0.5, 0.81, 0.2, 0.8, 0.39, 0.1, 0.6, 0.305]
const mu = [0.5, 0.6, 0.5, 0.5, 0.6, 0.12, 0.65, 0.2]
const teacher = [0.6, 0.7, 0.3, 0.5, 0.5, 0.2, 0.1, 0.5]
const eight: LossInputs = {
  trainerLogprobs: Float64Array.from(pi, Math.log),
  inferenceLogprobs: Float64Array.from(mu, Math.log),
  advantages: Float64Array.of(1, 1, 1, -1, -1, 0, -0.5, 2),
  mask: Uint8Array.of(1, 1, 1, 1, 1, 1, 0, 1),
  teacherLogprobs: Float64Array.from(teacher, Math.log),
}
const usual = { dppo_mask_low: 0.2, dppo_mask_high: 0.2, adv_tau: 1, kl_tau: 1e-3 }
const ipo = { ipo_threshold: 0.1, adv_tau: 1, kl_tau: 1e-3 }
const sum = (values: Float64Array) => values.reduce((total, value) => total + value, 0)
const expectClose = (values: ArrayLike<number>, wanted: readonly number[]) => {
  expect(values.length).toBe(wanted.length)
  for (const [token, value] of wanted.entries()) expect(values[token]).toBeCloseTo(value, 8)
}

describe('the losses of eight tokens', () => {
  it('are for the default these numbers', () => {
    const { losses, gradients, metrics } = createDefaultLoss(usual)(eight)
    expectClose(losses, [-1, 9.0063e-5, -0.399160411, 1.600220903, 0.000185574, 3.3241e-5, 0, -3.049821921])
    expectClose(gradients, [-1, 0.000600209, -0.401832581, 1.600940007, -0.000861566, -0.000364643, 0, -3.049156011])
    expect(metrics.mismatch_kl).toBeCloseTo(0.099375129, 8)
    expect(metrics.masked_mismatch_kl).toBeCloseTo(0.065339162, 8)
    expect(metrics.unmasked_mismatch_kl).toBeCloseTo(0.112989517, 8)
    expect(metrics.is_masked).toBeCloseTo(2 / 7, 12)
    expect(metrics.is_masked_low).toBeCloseTo(1 / 7, 12)
    expect(metrics.is_masked_high).toBeCloseTo(1 / 7, 12)
    expect(metrics.masked_advantage_positive).toBe(0.5)
    expect(metrics.masked_advantage_negative).toBe(0.5)
  })

  it('change with each knob by a tenth, and to these sums', () => {
    const sums: readonly (readonly [Loss, number])[] = [
      [createDefaultLoss(usual), -2.848452551],
      [createDefaultLoss({ ...usual, dppo_mask_low: 0.22 }), -2.198452551],
      [createDefaultLoss({ ...usual, dppo_mask_high: 0.22 }), -4.198452551],
      [createDefaultLoss({ ...usual, adv_tau: 1.1 }), -3.133452551],
      [createDefaultLoss({ ...usual, kl_tau: 1.1e-3 }), -2.848297806],
      [createIpoLoss(ipo), -0.998452551],
      [createIpoLoss({ ...ipo, ipo_threshold: 0.11 }), -4.048452551],
      [createIpoLoss({ ...ipo, adv_tau: 1.1 }), -1.098452551],
      [createIpoLoss({ ...ipo, kl_tau: 1.1e-3 }), -0.998297806],
      [opdLoss, -0.922378885],
      [sftLoss, -pi.reduce((total, p, token) => total + (token === 6 ? 0 : Math.log(p)), 0)],
    ]
    for (const [loss, wanted] of sums) expect(sum(loss(eight).losses)).toBeCloseTo(wanted, 8)
    expect(new Set(sums.map(([, wanted]) => wanted)).size).toBe(sums.length)
  })

  it('are for opd these numbers', () => {
    const { losses, gradients, metrics } = opdLoss(eight)
    expectClose(losses, [-0.182321557, 9.0063e-5, -0.161346455, 0.75222671, 0.000185574, -0.577589409, 0, -0.753623811])
    expectClose(gradients, [-0.182321557, 0.000600209, -0.164018625, 0.752945814, -0.000861566, -0.577987294, 0, -0.752957902])
    expect(metrics.teacher_kl).toBeCloseTo(-0.201104855, 8)
  })

  it('are for sft prime-rl’s example: 0.3 for [-0.1, -0.5, -0.2], of which the middle one is masked', () => {
    const logprobs = Float64Array.of(-0.1, -0.5, -0.2)
    const { losses, gradients, metrics } = sftLoss({ ...eight, trainerLogprobs: logprobs, mask: Uint8Array.of(1, 0, 1) })
    expect(sum(losses) / 2).toBeCloseTo(0.15, 12)
    expect([...gradients]).toEqual([-1, 0, -1])
    expect(metrics.nll).toBeCloseTo(0.15, 12)
  })

  it('take the low branch for an advantage of 0', () => {
    const one = (trainer: number, sampler: number) =>
      createDefaultLoss(usual)({
        trainerLogprobs: Float64Array.of(Math.log(trainer)),
        inferenceLogprobs: Float64Array.of(Math.log(sampler)),
        advantages: Float64Array.of(0),
        mask: Uint8Array.of(1),
      }).metrics.is_masked
    expect(one(0.9, 0.1)).toBe(0)
    expect(one(0.1, 0.9)).toBe(1)
  })
})

const losses: readonly (readonly [string, Loss])[] = [
  ['default', createDefaultLoss(usual)],
  ['default with all knobs moved', createDefaultLoss({ dppo_mask_low: 0.05, dppo_mask_high: 0.5, adv_tau: 0.3, kl_tau: 0.2 })],
  ['ipo', createIpoLoss(ipo)],
  ['sft', sftLoss],
  ['opd', opdLoss],
]
const logprob = fc.double({ min: -6, max: -0.01, noNaN: true })
const sequence = fc
  .array(
    fc.record({
      trainer: logprob,
      inference: logprob,
      teacher: logprob,
      advantage: fc.double({ min: -2, max: 2, noNaN: true }),
      flag: fc.boolean(),
    }),
    {
      minLength: 1,
      maxLength: 12,
    },
  )
  .map(
    (tokens): LossInputs => ({
      trainerLogprobs: Float64Array.from(tokens, ({ trainer }) => trainer),
      inferenceLogprobs: Float64Array.from(tokens, ({ inference }) => inference),
      teacherLogprobs: Float64Array.from(tokens, (token) => token.teacher),
      advantages: Float64Array.from(tokens, ({ advantage }) => advantage),
      mask: Uint8Array.from(tokens, ({ flag }) => Number(flag)),
    }),
  )

describe('every loss', () => {
  it.each(losses)('%s has the gradient that finite differences have', (name, loss) => {
    const step = 1e-6
    fc.assert(
      fc.property(sequence, (inputs) => {
        const { gradients } = loss(inputs)
        for (const token of inputs.mask.keys()) {
          // The advantage of opd is not differentiated: hold it by moving the teacher along.
          const at = (change: number) => {
            const move = (values: Float64Array) => values.map((value, index) => (index === token ? value + change : value))
            const teacherLogprobs =
              name === 'opd' && inputs.teacherLogprobs !== undefined ? move(inputs.teacherLogprobs) : inputs.teacherLogprobs
            const result = loss({ ...inputs, trainerLogprobs: move(inputs.trainerLogprobs), teacherLogprobs })
            return { value: sum(result.losses), dropped: result.metrics.is_masked }
          }
          const [above, below] = [at(step), at(-step)]
          // A token that is dropped on one side only has no derivative there.
          if (above.dropped !== below.dropped) continue
          const difference = (above.value - below.value) / (2 * step)
          expect(Math.abs(difference - (gradients[token] ?? 0))).toBeLessThan(
            1e-6 * (1 + Math.abs(difference)) + 1e-8 * Math.abs(above.value),
          )
        }
      }),
      { numRuns: 60 },
    )
  })

  it.each(losses)('%s does not see tokens that are not trained, not even NaN', (_, loss) => {
    fc.assert(
      fc.property(sequence, (inputs) => {
        const soil = (values: Float64Array = new Float64Array()) =>
          values.map((value, token) => (inputs.mask[token] === 1 ? value : Number.NaN))
        const soiled = {
          trainerLogprobs: soil(inputs.trainerLogprobs),
          inferenceLogprobs: soil(inputs.inferenceLogprobs),
          advantages: soil(inputs.advantages),
          teacherLogprobs: soil(inputs.teacherLogprobs),
          mask: inputs.mask,
        }
        expect(loss(soiled)).toEqual(loss(inputs))
        expect([...loss(inputs).losses].every((value, token) => inputs.mask[token] === 1 || value === 0)).toBe(true)
      }),
    )
  })

  it('has ratio 1 and no mismatch where trainer and sampler agree', () => {
    const { gradients, losses: terms, metrics } = createDefaultLoss(usual)({ ...eight, inferenceLogprobs: eight.trainerLogprobs })
    expect([...terms]).toEqual([...eight.advantages].map((advantage, token) => (token === 6 ? 0 : 0 - advantage)))
    expect([...gradients]).toEqual([...terms])
    expect(metrics.mismatch_kl).toBe(0)
    expect(mismatchKl(-1, -1 - 1e-9)).toBeGreaterThanOrEqual(0)
  })
})

/** Samples with logprobs of the trainer that follow from the token, so that they are the same wherever the token stands. */
const lengths = [5, 9, 3, 12, 7, 4, 8]
const samples = lengths.map(
  (completion, number): Sample => ({
    id: `s${number}`,
    environment: number % 2 === 0 ? 'even' : 'odd',
    promptIds: Uint32Array.from({ length: 3 }, (_, index) => 100 * (number + 1) + index),
    completionIds: Uint32Array.from({ length: completion }, (_, index) => 100 * (number + 1) + 3 + index),
    mask: Uint8Array.from({ length: completion }, (_, index) => Number(index % 3 !== 1)),
    logprobs: Float32Array.from({ length: completion }, (_, index) => -0.1 - 0.07 * ((number * 5 + index) % 9)),
    temperatures: new Float32Array(completion).fill(1),
    versions: new Uint32Array(completion).fill(4 - (number % 2)),
    contextVersionsMin: new Uint32Array(completion).fill(4 - (number % 2)),
    advantage: number - 3,
    reward: 0,
    trainingMode: 'rl',
    profile: 'fp32',
  }),
)
const trainerOf = ({ inputIds }: MicroBatch) => Float32Array.from(inputIds, (id) => -0.05 - ((id * 37) % 101) / 40)
const denominatorOf = (batches: readonly MicroBatch[]) =>
  lossDenominator(batches.reduce((total, batch) => total + countLossTokens(batch), 0))

describe('a batch', () => {
  it('has the same terms and weights however it is split, and each token its own', () => {
    const evaluate = (seqLen: number, workers: number) => {
      const batches = prepareBatch(samples, { seqLen, workers, padToMultipleOf: 2 }).flat()
      const denominator = denominatorOf(batches)
      const weights = new Map<number, number>()
      const terms = new Map<string, number>()
      for (const batch of batches) {
        const result = microBatchLoss(batch, trainerOf(batch), createDefaultLoss(usual), denominator)
        for (const [token, weight] of result.weights.entries()) if (weight !== 0) weights.set(batch.inputIds[token] ?? 0, weight)
        for (const { sampleId, loss } of result.sequences) if (sampleId !== '') terms.set(sampleId, loss)
      }
      return { denominator, weights: [...weights].toSorted(([a], [b]) => a - b), terms: [...terms].toSorted() }
    }
    const whole = evaluate(100, 1)
    expect(whole.denominator).toBe(samples.reduce((total, { mask }) => total + mask.reduce((a, b) => a + b, 0), 0))
    for (const [seqLen, workers] of [
      [15, 1],
      [15, 3],
      [40, 4],
      [100, 5],
    ] as const)
      expect(evaluate(seqLen, workers)).toEqual(whole)
  })

  it('weights ranks with few tokens as their tokens, not as ranks', () => {
    const batches = prepareBatch(samples.slice(0, 2), { seqLen: 100, workers: 2 }).flat()
    const global = denominatorOf(batches)
    const sums = batches.map((batch) => microBatchLoss(batch, trainerOf(batch), sftLoss, global).weights.reduce((a, b) => a + b, 0))
    expect(sums.reduce((a, b) => a + b, 0)).toBeCloseTo(-1, 12)
    expect(sums[0]).not.toBeCloseTo(sums[1] ?? 0, 3)
  })

  it('divides by at least 1, so a batch that trains nothing has a loss of 0', () => {
    const silent = samples.map((sample) => ({ ...sample, mask: new Uint8Array(sample.mask.length) }))
    const [[batch] = []] = prepareBatch(silent, { seqLen: 100, workers: 1 })
    if (batch === undefined) throw new Error('no batch')
    const result = microBatchLoss(batch, trainerOf(batch), createDefaultLoss(usual), denominatorOf([batch]))
    expect(result.sequences.every(({ loss }) => loss === 0)).toBe(true)
    expect(result.weights.every((weight) => weight === 0)).toBe(true)
  })

  it('names the sample of a value that is not finite, and of no other', () => {
    const [[batch] = []] = prepareBatch(samples, { seqLen: 100, workers: 1 })
    if (batch === undefined) throw new Error('no batch')
    const trainer = trainerOf(batch)
    const bad = batch.mask.indexOf(1)
    const named = (values: ArrayLike<number>) =>
      microBatchLoss(batch, values, createDefaultLoss(usual), 10).notFinite.map(({ sampleId }) => sampleId)
    expect(named(trainer)).toEqual([])
    expect(named(trainer.map((value, token) => (token === bad ? Number.NaN : value)))).toEqual([batch.sampleIds[0]])
    expect(named(trainer.map((value, token) => (token === bad ? Number.NEGATIVE_INFINITY : value)))).toEqual([batch.sampleIds[0]])
    // The first token of a prompt is predicted by nothing.
    expect(named(trainer.map((value, token) => (token === 0 ? Number.NaN : value)))).toEqual([])
  })

  it('gives metrics over trained tokens, by environment and by lag', () => {
    const metrics = new LossMetrics(4)
    const trained = samples.map((sample, number) => ({ ...sample, completionIds: sample.completionIds.map((id) => id + number) }))
    for (const batch of prepareBatch(trained, { seqLen: 20, workers: 2, padToMultipleOf: 4 }).flat()) {
      // Version 4 agrees bit for bit, version 3 does not.
      const trainer = batch.logprobs.map((value, token) => (batch.versions[token] === 4 ? value : value - 0.5))
      const result = microBatchLoss(batch, trainer, createDefaultLoss(usual), denominatorOf([batch]))
      metrics.add(batch, trainer, new Float32Array(trainer.length).fill(2), result)
    }
    const values = metrics.values()
    expect(values['mismatch_kl/lag_0/max']).toBe(0)
    expect(values['mismatch_kl/lag_1/mean']).toBeCloseTo(Math.exp(-0.5) + 0.5 - 1, 6)
    expect(values['mismatch_kl/even/mean']).toBe(0)
    expect(values['mismatch_kl/odd/max']).toBeCloseTo(Math.exp(-0.5) + 0.5 - 1, 6)
    expect(values['entropy/all/mean']).toBe(2)
    expect(values['kl_ent_ratio/mean']).toBeCloseTo((values['mismatch_kl/all/mean'] ?? 0) / 2, 12)
    expect(Object.keys(values)).toEqual(expect.arrayContaining(['loss/median', 'is_masked/max', 'entropy/odd/std']))
    const tokens = (version: number) =>
      samples.reduce((sum, { mask, versions }) => sum + mask.filter((flag, token) => flag === 1 && versions[token] === version).length, 0)
    expect(values).toMatchObject({
      'mismatch_kl/exact/max': 0,
      'tokens/exact': tokens(4),
      'tokens/lag_0': tokens(4),
      'tokens/lag_1': tokens(3),
    })
  })

  it('calls a token exact by its version and by the oldest key that it saw, and keeps the largest difference, NaN too', () => {
    const [[batch] = []] = prepareBatch(samples, { seqLen: 100, workers: 1 })
    if (batch === undefined) throw new Error('no batch')
    const trained = [...batch.mask.keys()].filter((token) => batch.mask[token] === 1)
    const exactOf = (contexts: number, differences: readonly number[]) => {
      const metrics = new LossMetrics(4)
      const trainer = Float64Array.from(batch.logprobs)
      trained.forEach((token, index) => {
        trainer[token] = (trainer[token] ?? 0) + (differences[index] ?? 0)
      })
      const seen = { ...batch, versions: batch.versions.map(() => 4), contextVersionsMin: batch.versions.map(() => contexts) }
      metrics.add(seen, trainer, trainer, microBatchLoss(batch, trainer, createDefaultLoss(usual), 10))
      const { 'tokens/exact': tokens, 'mismatch_kl/exact/max': largest } = metrics.values()
      return [tokens, largest]
    }
    expect(exactOf(4, [])).toEqual([trained.length, 0])
    expect(exactOf(4, [0.25, -0.5, 0.125])).toEqual([trained.length, 0.5])
    expect(exactOf(4, [0.25, Number.NaN, 0.5])[1]).toBeNaN()
    expect(exactOf(3, [0.25])).toEqual([0, undefined])
  })

  it('summarises', () => {
    expect(summarise([4, 1, 3, 2])).toEqual({ mean: 2.5, median: 2.5, std: Math.sqrt(1.25), min: 1, max: 4 })
    expect(summarise([7])).toEqual({ mean: 7, median: 7, std: 0, min: 7, max: 7 })
  })
})

describe('the losses of a configuration', () => {
  const folder = fileURLToPath(new URL('./__fixtures__', import.meta.url))

  it.each([
    [{ type: 'default', ...usual } as const, -2.848452551],
    [{ type: 'ipo', ...ipo } as const, -0.998452551],
    [{ type: 'custom', import_path: './losses.mjs', kwargs: { scale: 3 } } as const, 3 * sum(sftLoss(eight).losses)],
  ])('%o evaluates', async (choice, wanted) => {
    const made = await createLosses(choice, folder)
    expect(sum(made.rl(eight).losses)).toBeCloseTo(wanted, 8)
    const modes: TrainingMode[] = ['opd', 'sft']
    for (const mode of modes) expect(Number.isFinite(sum(made[mode](eight).losses))).toBe(true)
  })

  it('takes metrics of a loss of a user', async () => {
    const loss = await loadCustomLoss({ import_path: './losses.mjs#withMetrics', folder })
    expect(loss(eight).metrics).toEqual({ tokens: 8 })
  })

  it.each([
    ['./missing.mjs', /cannot be loaded/],
    ['#name', /no path of a module/],
    ['./losses.mjs#absent', /has no function absent; it exports/],
    ['./losses.mjs#noFunction', /has no function noFunction/],
    ['./losses.mjs#short', /returned 1 losses for 2 tokens/],
    ['./losses.mjs#unmasked', /gradients of NaN for token 0, which is not trained/],
    ['./losses.mjs#nothing', /something else than losses/],
    ['./losses.mjs#failing', /failed: not today/],
  ])('refuses %s before the run', async (import_path, message) => {
    await expect(loadCustomLoss({ import_path, folder })).rejects.toThrow(
      expect.objectContaining({ code: 'LOSS_INVALID', message: expect.stringMatching(message) }),
    )
  })
})
