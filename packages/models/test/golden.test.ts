/** The fixtures of Hugging Face: logits, log-probabilities, loss, every gradient, routed experts and the keys that indexers chose. */
import type { OpaquePayload } from '@trilithon/core'
import { fromArray, liveTensors, record, scope, type Tensor, toArray } from '@trilithon/tensor'
import { afterEach, describe, expect, test } from 'vitest'
import { createPackedContext, loadModel, type Model } from '../src/index.ts'
import { type Golden, goldenFamilies, largestDifference, lossWeights, readGolden, relativeNorm } from './golden.ts'
import { valuesOf } from './running.ts'

const tolerance = 2e-5

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

describe.each(goldenFamilies)('%s', (family) => {
  const golden = readGolden(family)
  const { ids } = golden
  const withModel = (body: (model: Model) => void) => {
    const { model } = loadModel(golden.folder)
    try {
      body(model)
    } finally {
      model.dispose()
    }
  }

  test('logits, log-probabilities and entropies', () => {
    withModel((model) =>
      scope(() => {
        const { hidden } = model.forward(ids, createPackedContext([ids.length]))
        const logits = valuesOf(model.logits(hidden))
        expect(largestDifference(logits, golden.expected.get('logits') as Float32Array)).toBeLessThan(tolerance)
        const { logprobs, entropy } = model.score(hidden, [...ids.slice(1), 0], { entropy: true })
        expect(largestDifference(valuesOf(logprobs).slice(0, -1), golden.logprobs)).toBeLessThan(tolerance)
        expect(largestDifference(valuesOf(entropy as Tensor), entropiesOf(logits, model.config.vocabSize))).toBeLessThan(tolerance)
      }),
    )
  })

  test('the loss and every gradient', () => {
    withModel((model) =>
      record((tape) => {
        const { hidden } = model.forward(ids, createPackedContext([ids.length]))
        const { logprobs } = model.score(hidden, [...ids.slice(1), 0])
        const weights = [...lossWeights(ids.length - 1), 0]
        const loss = valuesOf(logprobs).reduce((sum, logprob, row) => sum - (weights[row] as number) * logprob, 0)
        expect(Math.abs(loss - golden.loss)).toBeLessThan(1e-4)
        const gradient = weights.map((weight) => -weight)
        tape.backward([{ output: logprobs, gradient: fromArray('f32', [ids.length], gradient) }])
        const names = [...model.weights.keys()].filter((name) => golden.expected.has(`grad.${name}`))
        // Every gradient of the file is one of ours, and all others are of what is frozen.
        expect(names.length).toBe(golden.expected.size - 1)
        for (const [name, parameter] of model.weights) {
          const expected = golden.expected.get(`grad.${name}`)
          if (expected === undefined)
            expect([parameter.gradient, golden.noGradient.includes(name) || parameter.kind === 'buffer']).toEqual([null, true])
          else expect(relativeNorm(valuesOf(parameter.gradient as Tensor), expected), name).toBeLessThan(tolerance)
        }
      }),
    )
  })

  test('routed experts and chosen keys', () => {
    withModel((model) =>
      scope(() => {
        const { routes, choices } = model.forward(ids, createPackedContext([ids.length]), { recordRoutes: true, recordChoices: true })
        const layers = Object.keys(golden.routed)
        expect(routes?.shape.slice(0, 2) ?? [ids.length, 0]).toEqual([ids.length, layers.length])
        for (const [index, layer] of layers.entries())
          for (const [row, expected] of (golden.routed[layer] as Golden['routed'][string]).indices.entries()) {
            const [, count, topK] = (routes as OpaquePayload).shape as [number, number, number]
            const first = (row * count + index) * topK
            expect(new Set(routes?.data.subarray(first, first + topK)), `layer ${layer}, row ${row}`).toEqual(new Set(expected))
          }
        expect([...(choices?.keys() ?? [])].map(String)).toEqual(Object.keys(golden.indexerTopK))
        for (const [layer, { indices, counts }] of choices ?? []) {
          const [all, sizes] = [toArray(indices) as Int32Array, toArray(counts) as Int32Array]
          const width = indices.dim(1)
          for (const [row, expected] of (golden.indexerTopK[layer] as number[][]).entries())
            expect([...all.subarray(row * width, row * width + (sizes[row] as number))], `layer ${layer}, row ${row}`).toEqual(expected)
        }
      }),
    )
  })
})

function entropiesOf(logits: Float32Array, vocab: number): number[] {
  return Array.from({ length: logits.length / vocab }, (_, row) => {
    const z = Array.from(logits.subarray(row * vocab, (row + 1) * vocab))
    const most = Math.max(...z)
    const total = z.reduce((sum, value) => sum + Math.exp(value - most), 0)
    return z.reduce((sum, value) => sum - (Math.exp(value - most) / total) * (value - most - Math.log(total)), 0)
  })
}
