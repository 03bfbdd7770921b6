import { afterEach, expect, test } from 'vitest'
import { randomTensor } from '../../test/random-tensor.ts'
import {
  fromArray,
  liveTensors,
  lmHead,
  packWeight,
  record,
  type SamplingRules,
  sampleFromHidden,
  sampleFromLogits,
  scope,
  toArray,
} from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const random = (shape: readonly number[], name: string) => randomTensor(shape, name, 8)

function rulesOf(temperatures: readonly number[], seeds: readonly number[]): SamplingRules {
  const rows = temperatures.length
  return {
    temperature: fromArray('f32', [rows], temperatures),
    seeds: fromArray('i64', [rows], seeds),
    positions: fromArray(
      'i32',
      [rows],
      Array.from({ length: rows }, (_, index) => index),
    ),
  }
}

test('the log-probability of a sampled token is that of the head, bit for bit; a packed weight changes nothing', () => {
  scope(() => {
    const [hidden, weight] = [random([4, 8], 'hidden'), random([600, 8], 'weight')]
    const rules = rulesOf([1, 0.5, 2, 1], [1, 2, 3, 4])
    const sampled = sampleFromHidden(hidden, weight, rules)
    expect(toArray(lmHead(hidden, weight, sampled.tokens, rules.temperature).logprobs)).toEqual(toArray(sampled.logprobs))
    const packed = packWeight(weight)
    const again = sampleFromHidden(hidden, weight, rules, packed)
    expect([toArray(again.tokens), toArray(again.logprobs)]).toEqual([toArray(sampled.tokens), toArray(sampled.logprobs)])
    packed.dispose()
  })
})

test('temperature 0 takes the most likely token, a seed repeats, top-k cuts', () => {
  scope(() => {
    const logits = fromArray('f32', [2, 4], [0, 3, 1, 2, 5, 4, 6, 1])
    expect([...toArray(sampleFromLogits(logits, rulesOf([0, 0], [1, 2])).tokens)]).toEqual([1, 2])
    const rules = rulesOf([5, 5], [7, 9])
    expect(toArray(sampleFromLogits(logits, rules).tokens)).toEqual(toArray(sampleFromLogits(logits, rules).tokens))
    const best = { ...rules, topK: fromArray('i32', [2], [1, 1]) }
    expect([...toArray(sampleFromLogits(logits, best).tokens)]).toEqual([1, 2])
  })
})

test('it refuses to be recorded', () => {
  scope(() =>
    record((tape) => {
      const logits = tape.watch(fromArray('f32', [1, 2], [0, 1]))
      expect(() => sampleFromLogits(logits, rulesOf([1], [1]))).toThrowError(expect.objectContaining({ path: 'sampleFromLogits.logits' }))
    }),
  )
})
