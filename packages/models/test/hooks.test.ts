/** The three hooks of parallelism, each with a filling that would show a layer that goes around it. */
import {
  fromArray,
  keep,
  liveTensors,
  localExperts,
  localSequence,
  type ParameterGathering,
  type SequenceGathering,
  scope,
  type Tensor,
} from '@trilithon/tensor'
import { someIds, type TinyFamily, tinyFamilies } from '@trilithon/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { createModel, createPackedContext, Model } from '../src/index.ts'
import { packedHidden, trainStep, valuesOf } from './running.ts'
import { tinyConfig } from './tiny-models.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const documents = [someIds(7, 19, 3), someIds(12, 19, 5)]

describe.each(tinyFamilies)('%s', (family: TinyFamily) => {
  test('parameters have values between need and release of their unit alone, and gradients when their unit is done', () => {
    const reference = createModel(tinyConfig(family), { seed: 3 })
    const aside = new Map([...reference.weights].map(([name, { value, shape }]) => [name, { shape, values: valuesOf(value) }]))
    const expected = trainStep(reference, documents)
    reference.dispose()
    const needed = new Map<string, number>()
    const ready: string[] = []
    const gathering: ParameterGathering = {
      need(unit) {
        needed.set(unit, (needed.get(unit) ?? 0) + 1)
        if (needed.get(unit) !== 1) return
        for (const parameter of model.parameters()) {
          const stored = aside.get(parameter.name)
          if (parameter.unit === unit && stored !== undefined) parameter.place(fromArray('f32', stored.shape, stored.values))
        }
      },
      release(unit) {
        needed.set(unit, (needed.get(unit) ?? 0) - 1)
        if (needed.get(unit) !== 0) return
        for (const parameter of model.parameters()) if (parameter.unit === unit) parameter.take().dispose()
      },
      gradientsReady: (unit) => ready.push(unit),
    }
    const model = new Model(tinyConfig(family), { parameters: gathering })
    for (const recompute of [false, true]) {
      ready.length = 0
      expect(trainStep(model, documents, { recompute })).toEqual(expected)
      expect([...new Set(ready)].sort()).toEqual(
        [...model.units].filter((unit) => [...model.parameters()].some((each) => each.unit === unit)).sort(),
      )
      expect(ready).toHaveLength(new Set(ready).size)
      expect([...needed.values()].every((count) => count === 0)).toBe(true)
      expect([...model.parameters()].every(({ isMeta }) => isMeta)).toBe(true)
    }
  })

  test('a rank that has some rows and the keys of all computes the bits of its rows', () => {
    const model = createModel(tinyConfig(family), { seed: 3 })
    const width = model.config.hiddenSize
    const lengths = documents.map(({ length }) => length)
    const keys: { shape: readonly number[]; values: Float32Array }[] = []
    const recording: SequenceGathering = {
      ...localSequence,
      keys(x, tokens) {
        const whole = localSequence.keys(x, tokens)
        keys.push({ shape: whole.shape, values: valuesOf(whole.isContiguous ? whole : keep(whole)) })
        return whole
      },
    }
    scope(() => {
      const whole = valuesOf(model.forward(documents.flat(), createPackedContext(lengths, recording)).hidden)
      expect(keys.length).toBeGreaterThan(0)
      // Two ranks, each with two pieces that cut through documents.
      for (const ranges of [
        [
          [0, 4],
          [13, 19],
        ],
        [[4, 13]],
      ]) {
        const left = [...keys]
        const split: SequenceGathering = {
          rank: 0,
          ranks: 2,
          rows: () => ranges.map(([begin, end]) => ({ begin: begin as number, end: end as number })),
          keys(): Tensor {
            const next = left.shift()
            if (next === undefined) throw new Error('more keys than in the whole')
            return fromArray('f32', next.shape, next.values)
          },
        }
        const context = createPackedContext(lengths, split)
        const ids = ranges.flatMap(([begin, end]) => documents.flat().slice(begin, end))
        const hidden = valuesOf(model.forward(ids, context).hidden)
        expect(hidden).toEqual(
          Float32Array.from(ranges.flatMap(([begin, end]) => [...whole.subarray((begin as number) * width, (end as number) * width)])),
        )
        expect(left).toEqual([])
      }
    })
    model.dispose()
  })

  test('experts are reached through the exchange alone', () => {
    const seen: number[] = []
    const config = tinyConfig(family)
    const model = createModel(config, {
      seed: 3,
      exchange: {
        ...localExperts,
        run(x, ids, weights, experts, compute) {
          const result = localExperts.run(x, ids, weights, experts, (rows, starts) => {
            seen.push(rows.dim(0))
            return compute(rows, starts)
          })
          return result
        },
      },
    })
    const plain = createModel(config, { seed: 3 })
    expect(packedHidden(model, documents)).toEqual(packedHidden(plain, documents))
    const layers = 'sparseLayers' in config ? config.sparseLayers.filter(Boolean).length : 0
    expect(seen).toEqual(new Array(layers).fill(38))
    model.dispose()
    plain.dispose()
  })
})
