import type { MicroBatch } from '@trilithon/core'
import { parseModelConfig } from '@trilithon/models'
import { fromArray, linear, liveTensors, noGrad, scope } from '@trilithon/tensor'
import { expect, test } from 'vitest'
import { FlopsMeter } from './flops-meter.ts'
import { measurePeak } from './measure-peak.ts'

// One layer: q, k, v, o of 2 × 2, an MLP of 3 × 2 × 3, a head of 5 × 2.
const config = parseModelConfig(
  {
    model_type: 'qwen3',
    vocab_size: 5,
    hidden_size: 2,
    num_hidden_layers: 1,
    num_attention_heads: 1,
    num_key_value_heads: 1,
    head_dim: 2,
    intermediate_size: 3,
    max_position_embeddings: 16,
    rms_norm_eps: 1e-6,
    rope_theta: 100,
  },
  'config.json',
)
const weights = 4 * 4 + 18 + 10
const batch = (lengths: readonly number[], ids: readonly string[]) =>
  ({ sequenceLengths: lengths, sampleIds: ids }) as unknown as MicroBatch

test('the operations of the documents over the time and the peak, in percent; padding is no work', () => {
  const meter = new FlopsMeter({ config, trainsIndexers: false, peak: 1e6 })
  // Documents of 3 and 1 tokens: 7 pairs of query and key, each a score and a sum over 2 elements.
  const flops = 6 * (weights * 4 + 7 * 2 * 2)
  const batches = [batch([3, 5], ['a', '']), batch([1], ['b']), batch([4], [''])]
  expect(meter.values(batches, 0.5)).toEqual({ 'perf/mfu': (100 * flops) / 0.5 / 1e6, 'perf/measured_peak_gflops': 1e-3 })
})

test('the peak is about what a product of another size reaches here, is measured once, and leaves no tensor behind', () => {
  const before = liveTensors().tensors
  let peak = measurePeak()
  expect(liveTensors().tensors).toBe(before)
  const [rows, columns, depth] = [256, 768, 1024]
  const reached = noGrad(() =>
    scope(() => {
      const ones = (count: number) => new Float32Array(count).fill(1)
      const x = fromArray('f32', [rows, depth], ones(rows * depth))
      const weight = fromArray('f32', [columns, depth], ones(columns * depth))
      const seconds = Array.from({ length: 30 }, () => {
        const begin = performance.now()
        scope(() => void linear(x, weight))
        return (performance.now() - begin) / 1000
      })
      return (2 * rows * columns * depth) / Math.min(...seconds)
    }),
  )
  // Other work on the machine may take most of it from one of the two, for a while.
  for (let again = 0; again < 30 && peak < 0.2 * reached; again++) peak = measurePeak()
  expect(peak / reached).toBeGreaterThan(0.2)
  expect(peak / reached).toBeLessThan(5)
  const meter = new FlopsMeter({ config, trainsIndexers: false })
  const [first, second] = [meter.values([batch([3], ['a'])], 1), meter.values([batch([3], ['a'])], 1)]
  expect(second).toEqual(first)
})
