import { fromArray, record, scope, type Tensor, toArray } from '@trilithon/tensor'
import { afterEach, describe, expect, test } from 'vitest'
import { createPackedContext, loadModel } from '../src/index.ts'
import { type GoldenFamily, goldenFamilies, largestDifference, lossWeights, readGolden, relativeNorm } from './golden.ts'

const valuesOf = (tensor: Tensor) => toArray(tensor) as Float32Array

function gradientOfLogits(logits: Float32Array, ids: readonly number[], vocab: number): Float32Array {
  const d = new Float32Array(logits.length)
  const weights = lossWeights(ids.length - 1)
  for (let t = 0; t + 1 < ids.length; t++) {
    const row = Float64Array.from(logits.subarray(t * vocab, (t + 1) * vocab))
    const max = Math.max(...row)
    let sum = 0
    for (const z of row) sum += Math.exp(z - max)
    for (let v = 0; v < vocab; v++) {
      const p = Math.exp((row[v] as number) - max) / sum
      d[t * vocab + v] = -(weights[t] as number) * ((v === ids[t + 1] ? 1 : 0) - p)
    }
  }
  return d
}

describe.each(['qwen3', 'qwen3_moe'] as const)('%s', (family) => {
  test('logits and gradients are those of Hugging Face', () => {
    const golden = readGolden(family)
    const { model } = loadModel(golden.folder)
    record((tape) => {
      const context = createPackedContext([golden.ids.length])
      const { hidden } = model.forward(golden.ids, context, { recompute: true })
      const logits = model.logits(hidden)
      const values = valuesOf(logits)
      const diff = largestDifference(values, golden.expected.get('logits') as Float32Array)
      console.log('logits', diff)
      expect(diff).toBeLessThan(2e-5)
      tape.backward([
        { output: logits, gradient: fromArray('f32', logits.shape, gradientOfLogits(values, golden.ids, model.config.vocabSize)) },
      ])
      for (const [name, parameter] of model.weights) {
        const want = golden.expected.get(`grad.${name}`)
        const r = relativeNorm(valuesOf(parameter.gradient as Tensor), want as Float32Array)
        console.log(name, r)
        expect(r).toBeLessThan(2e-5)
      }
    })
    model.dispose()
  })
})
