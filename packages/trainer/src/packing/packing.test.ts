import type { MicroBatch, Sample, TrainingMode } from '@trilithon/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { partitionEvenly } from './partition.ts'
import { type PrepareBatchOptions, prepareBatch } from './prepare-batch.ts'

type Parts = Partial<Sample> & { readonly prompt?: number; readonly completion?: number }

/** Every array tells its token: ids count on from the sample's number, so that a shift of one shows. */
function sample(number: number, { prompt = 2, completion = 3, ...more }: Parts = {}): Sample {
  const count = (length: number, first: number) => Uint32Array.from({ length }, (_, index) => first + index)
  const base = (number + 1) * 1000
  return {
    id: `s${number}`,
    environment: `e${number % 2}`,
    promptIds: count(prompt, base),
    completionIds: count(completion, base + prompt),
    mask: new Uint8Array(completion).fill(1),
    logprobs: Float32Array.from({ length: completion }, (_, index) => -(base + prompt + index)),
    temperatures: new Float32Array(completion).fill(0.5),
    versions: new Uint32Array(completion).fill(number),
    contextVersionsMin: new Uint32Array(completion).fill(number),
    advantage: number / 4,
    reward: number / 8,
    trainingMode: 'rl',
    profile: 'fp32',
    ...more,
  }
}

/** A row of routed experts that tells its token: the low byte of the id, in every layer and slot. */
function routed(ids: readonly number[], layers = 2, topK = 2) {
  return {
    data: Uint8Array.from(ids.flatMap((id) => new Array<number>(layers * topK).fill(id % 256))),
    shape: [ids.length, layers, topK],
    dtype: 'uint8' as const,
  }
}

const ofLengths = (lengths: readonly number[], more: Parts = {}) =>
  lengths.map((length, index) => sample(index, { prompt: 1, completion: length - 1, ...more }))
const isIdle = ({ sampleIds }: MicroBatch) => sampleIds.every((id) => id === '')
const tokensOf = (batches: readonly MicroBatch[]) => batches.reduce((sum, { inputIds }) => sum + inputIds.length, 0)

/** Sequences of a batch with their slices of every array. */
function sequencesOf(batch: MicroBatch) {
  let at = 0
  return batch.sequenceLengths.map((length, index) => {
    const begin = at
    at += length
    const cut = <T extends Uint8Array | Uint32Array | Float32Array>(array: T) => [...array.subarray(begin, at)]
    return {
      id: batch.sampleIds[index] ?? '',
      environment: batch.environments[index],
      reward: batch.rewards[index],
      ids: cut(batch.inputIds),
      positions: cut(batch.positionIds),
      mask: cut(batch.mask),
      advantages: cut(batch.advantages),
      logprobs: cut(batch.logprobs),
      temperatures: cut(batch.temperatures),
      versions: cut(batch.versions),
    }
  })
}

describe('packing for rl, as prime-rl does', () => {
  it('splits bins rather than make a rank idle', () => {
    const packed = prepareBatch(ofLengths([6, 6, 5, 5, 4, 4]), { seqLen: 12, workers: 4 })
    expect(packed.map((batches) => batches.length)).toEqual([1, 1, 1, 1])
    expect(packed.flat().some(isIdle)).toBe(false)
    // Of [6 6] [5 5] [4 4] the dearest was split.
    expect(packed.map(tokensOf).sort((a, b) => a - b)).toEqual([6, 6, 8, 10])
  })

  it('balances tokens over ranks', () => {
    const packed = prepareBatch(ofLengths([100, 90, 80, 70]), { seqLen: 100, workers: 2 })
    expect(packed.map(tokensOf)).toEqual([170, 170])
  })

  it('balances the cost of attention where it is known', () => {
    const options = { seqLen: 32, workers: 2, cost: { linear: 1, quadratic: 1 } }
    const packed = prepareBatch(ofLengths([32, 32, 16, 16, 16, 16]), options)
    for (const batches of packed) expect(batches.map(({ sequenceLengths }) => sequenceLengths)).toEqual([[32], [16, 16]])
  })

  it('packs per-token temperatures together', () => {
    const [batches = []] = prepareBatch(
      [0.7, 1.1].map((temperature, index) =>
        sample(index, { prompt: 1, completion: 3, temperatures: new Float32Array(3).fill(temperature) }),
      ),
      { seqLen: 8, workers: 1 },
    )
    expect([...(batches[0]?.temperatures ?? [])]).toEqual([...new Float32Array([0.7, 0.7, 0.7, 0.7, 1.1, 1.1, 1.1, 1.1])])
  })

  it('pads to a multiple as a sequence of its own', () => {
    const [[batch] = []] = prepareBatch([sample(0, { prompt: 1, completion: 3 })], { seqLen: 8, workers: 1, padToMultipleOf: 6 })
    expect(batch?.sequenceLengths).toEqual([4, 2])
    expect(batch?.sampleIds).toEqual(['s0', ''])
    expect([...(batch?.inputIds ?? [])].slice(4)).toEqual([1, 1])
    expect([...(batch?.positionIds ?? [])]).toEqual([0, 1, 2, 3, 0, 1])
    expect([...(batch?.mask ?? [])]).toEqual([0, 1, 1, 1, 0, 0])
    expect(batch?.rewards).toEqual([0, null])
  })

  it('never mixes losses, nor samples with and without routed experts', () => {
    const modes: TrainingMode[] = ['rl', 'sft', 'rl', 'sft']
    const kinds = modes.map((trainingMode, index) =>
      sample(index, { prompt: 1, completion: 1, trainingMode, ...(index < 2 ? { routedExperts: routed([1, 2]) } : {}) }),
    )
    const batches = prepareBatch(kinds, { seqLen: 100, workers: 1 }).flat()
    expect(batches.map(({ sampleIds }) => sampleIds)).toEqual([['s0'], ['s1'], ['s2'], ['s3']])
    expect(batches.map(({ trainingMode, routedExperts }) => [trainingMode, routedExperts !== undefined])).toEqual([
      ['rl', true],
      ['sft', true],
      ['rl', false],
      ['sft', false],
    ])
  })

  it('cuts a long sample with all that belongs to its tokens', () => {
    const ids = [1000, 1001, 1002, 1003, 1004]
    const [[batch] = []] = prepareBatch([sample(0, { routedExperts: routed(ids) })], { seqLen: 3, workers: 1 })
    expect([...(batch?.inputIds ?? [])]).toEqual([1000, 1001, 1002])
    expect([...(batch?.logprobs ?? [])]).toEqual([0, 0, -1002])
    expect([...(batch?.temperatures ?? [])]).toEqual([0.5, 0.5, 0.5])
    expect(batch?.routedExperts).toEqual(routed(ids.slice(0, 3)))
  })

  it('gives a sample without a completion temperature 1 and nothing to train', () => {
    const [[batch] = []] = prepareBatch([sample(0, { prompt: 2, completion: 0 })], { seqLen: 8, workers: 1 })
    expect([...(batch?.temperatures ?? [])]).toEqual([1, 1])
    expect([...(batch?.mask ?? [])]).toEqual([0, 0])
  })

  it('marks rows of routed experts that were never computed, in padding and behind the last token', () => {
    const [[batch] = []] = prepareBatch([sample(0, { routedExperts: routed([1000, 1001, 1002, 1003]) })], {
      seqLen: 8,
      workers: 1,
      padToMultipleOf: 4,
    })
    expect(batch?.routedExperts?.shape).toEqual([8, 2, 2])
    expect([...(batch?.routedExperts?.data ?? [])].slice(16)).toEqual(new Array(16).fill(255))
  })

  it.each([1, 2, 3, 4, 5])('takes a sequence of %d tokens when it pads to 4', (length) => {
    const [[batch] = []] = prepareBatch(ofLengths([length]), { seqLen: 8, workers: 1, padToMultipleOf: 4 })
    expect(batch?.inputIds.length).toBe(length <= 4 ? 4 : 8)
    expect(batch?.sequenceLengths).toEqual(length === 4 ? [4] : [length, (8 - length) % 4])
  })

  const draws = fc.record({
    samples: fc.array(
      fc.record({
        prompt: fc.integer({ min: 1, max: 20 }),
        completion: fc.integer({ min: 0, max: 30 }),
        trainingMode: fc.constantFrom<TrainingMode>('rl', 'sft'),
        hasRoutes: fc.boolean(),
      }),
      { minLength: 1, maxLength: 30 },
    ),
    seqLen: fc.integer({ min: 8, max: 64 }),
    workers: fc.integer({ min: 1, max: 5 }),
    padToMultipleOf: fc.constantFrom(1, 2, 4),
    quadratic: fc.constantFrom(0, 0.1),
  })

  it('trains each sample once, with its own values, equally many micro-batches per rank', () => {
    fc.assert(
      fc.property(draws, ({ samples: shapes, seqLen, workers, padToMultipleOf, quadratic }) => {
        const samples = shapes.map(({ prompt, completion, trainingMode, hasRoutes }, index) => {
          const made = sample(index, { prompt, completion, trainingMode })
          return hasRoutes ? { ...made, routedExperts: routed([...made.promptIds, ...made.completionIds]) } : made
        })
        const options: PrepareBatchOptions = { seqLen, workers, padToMultipleOf, cost: { linear: 1, quadratic } }
        const packed = prepareBatch(samples, options)
        expect(new Set(packed.map((batches) => batches.length)).size).toBe(1)
        const batches = packed.flat()
        const trained = batches.flatMap(({ sampleIds }) => sampleIds).filter((id) => id !== '')
        expect(trained.toSorted()).toEqual(samples.map(({ id }) => id).toSorted())
        for (const batch of batches) {
          const total = batch.sequenceLengths.reduce((sum, length) => sum + length, 0)
          expect(batch.inputIds.length).toBe(total)
          expect(total % padToMultipleOf).toBe(0)
          expect(total).toBeLessThanOrEqual(Math.ceil(seqLen / padToMultipleOf) * padToMultipleOf)
          if (isIdle(batch)) expect([...batch.mask, ...batch.advantages].every((value) => value === 0)).toBe(true)
          for (const [row, id] of [...batch.inputIds].entries()) {
            const { routedExperts } = batch
            if (routedExperts !== undefined && id !== 1) expect(routedExperts.data[row * 4]).toBe(id % 256)
          }
          for (const sequence of sequencesOf(batch)) {
            expect(sequence.positions).toEqual(sequence.ids.map((_, index) => index))
            const of = samples.find(({ id }) => id === sequence.id)
            if (of === undefined) continue
            const { promptIds, completionIds } = of
            const ids = [...promptIds, ...completionIds].slice(0, seqLen)
            expect(sequence.ids).toEqual(ids)
            const isCompletion = ids.map((_, index) => index >= promptIds.length)
            expect(sequence.mask).toEqual(isCompletion.map(Number))
            expect(sequence.logprobs).toEqual(ids.map((id, index) => (isCompletion[index] ? -id : 0)))
            expect(sequence.advantages.every((value) => value === Math.fround(of.advantage ?? 0))).toBe(true)
            expect([sequence.environment, sequence.reward, batch.trainingMode]).toEqual([of.environment, of.reward, of.trainingMode])
          }
        }
        expect(prepareBatch(samples, options)).toEqual(packed)
      }),
      { numRuns: 80 },
    )
  })
})

describe('the partition over ranks', () => {
  it('is even in number, complete, and no further apart than the dearest from the cheapest', () => {
    const costs = fc
      .tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 8 }))
      .chain(([count, each]) =>
        fc.tuple(fc.constant(count), fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: count * each, maxLength: count * each })),
      )
    fc.assert(
      fc.property(costs, ([count, items]) => {
        const parts = partitionEvenly(items, count)
        expect(parts.map((part) => part.length)).toEqual(new Array(count).fill(items.length / count))
        expect(parts.flat().toSorted((a, b) => a - b)).toEqual(items.map((_, index) => index))
        const sums = parts.map((part) => part.reduce((sum, index) => sum + (items[index] ?? 0), 0))
        expect(Math.max(...sums) - Math.min(...sums)).toBeLessThanOrEqual(Math.max(...items) - Math.min(...items))
      }),
    )
  })

  it('finds what only a swap finds, and refuses what is not even', () => {
    expect(partitionEvenly([], 3)).toEqual([[], [], []])
    const sums = partitionEvenly([8, 7, 6, 5, 4, 2], 2).map((part) =>
      part.reduce((sum, index) => sum + ([8, 7, 6, 5, 4, 2][index] ?? 0), 0),
    )
    expect(sums.sort()).toEqual([16, 16])
    expect(() => partitionEvenly([1, 2, 3], 2)).toThrow(expect.objectContaining({ code: 'INVARIANT_BROKEN' }))
  })
})

describe('a sample that does not fit together', () => {
  const other = { data: new Uint8Array(6), shape: [2, 3, 1], dtype: 'uint8' as const }
  it.each<[string, Sample[], RegExp]>([
    ['no samples', [], /the batch is empty/],
    ['no id', [sample(0, { id: '' })], /no id/],
    ['no token', [sample(0, { prompt: 0, completion: 0 })], /no token/],
    ['a short mask', [sample(0, { mask: new Uint8Array(1) })], /mask has 1 entries for 3 tokens/],
    ['long logprobs', [sample(0, { logprobs: new Float32Array(4) })], /logprobs has 4/],
    ['no advantage', [sample(0, { advantage: null })], /no advantage/],
    ['no teacher', [sample(0, { trainingMode: 'opd' })], /no teacherLogprobs/],
    ['a short teacher', [sample(0, { teacherLogprobs: new Float32Array(2) })], /2 entries for 5/],
    ['a trained first token', [sample(0, { prompt: 0 })], /nothing predicts it/],
    ['temperature 0', [sample(0, { temperatures: new Float32Array(3) })], /a temperature is 0/],
    ['temperature NaN', [sample(0, { temperatures: new Float32Array(3).fill(Number.NaN) })], /a temperature is NaN/],
    ['too many rows', [sample(0, { routedExperts: routed([1, 2, 3, 4, 5, 6]) })], /6 rows for 5 tokens/],
    ['torn rows', [sample(0, { routedExperts: { ...other, shape: [3, 3, 1] } })], /has 6 bytes/],
    ['rows of two kinds', [sample(0, { routedExperts: routed([1]) }), sample(1, { routedExperts: other })], /3 x 1 uint8 a row.*2 x 2/],
    ['an id twice', [sample(0), sample(0)], /in the batch twice/],
    ['two profiles', [sample(0), sample(1, { profile: 'bf16' })], /its profile is bf16/],
  ])('with %s is refused by name', (_, samples, message) => {
    expect(() => prepareBatch(samples, { seqLen: 8, workers: 1 })).toThrow(
      expect.objectContaining({ code: 'SAMPLE_INVALID', message: expect.stringMatching(message) }),
    )
  })
})
