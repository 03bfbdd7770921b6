import { afterEach, expect, test } from 'vitest'
import {
  expertIdType,
  fromArray,
  liveTensors,
  localExperts,
  record,
  scale,
  scope,
  sigmoidRouter,
  softmaxRouter,
  type Tensor,
  toArray,
  zeros,
} from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const valuesOf = (tensor: Tensor) => [...toArray(tensor)]

test('X1: the one rank owns every expert', () => {
  expect(localExperts.owned(6)).toEqual({ first: 0, count: 6 })
})

test('X2, X3, X5: rows sorted by expert, sums by token, counts over all experts', () => {
  scope(() => {
    const x = fromArray('f32', [3, 1], [1, 2, 3])
    const ids = fromArray('u8', [3, 2], [2, 0, 0, 3, 2, 3])
    const weights = fromArray('f32', [3, 2], [1, 10, 100, 1000, 1e4, 1e5])
    let calls = 0
    const { y, expertStarts } = localExperts.run(x, ids, weights, 4, (rows, starts) => {
      calls++
      expect(valuesOf(rows)).toEqual([1, 2, 1, 3, 2, 3])
      expect(valuesOf(starts)).toEqual([0, 2, 2, 4, 6])
      return scale(rows, 2)
    })
    expect(calls).toBe(1)
    expect(valuesOf(y)).toEqual([22, 4400, 660_000])
    expect(valuesOf(expertStarts)).toEqual([0, 2, 2, 4, 6])
  })
})

test('X2: no tokens at all', () => {
  scope(() => {
    const { y } = localExperts.run(zeros('f32', [0, 5]), zeros('u8', [0, 2]), zeros('f32', [0, 2]), 3, (rows, starts) => {
      expect([rows.shape, valuesOf(starts)]).toEqual([
        [0, 5],
        [0, 0, 0, 0],
      ])
      return rows
    })
    expect(y.shape).toEqual([0, 5])
  })
})

test('X4: gradients reach tokens and weights', () => {
  scope(() =>
    record((tape) => {
      const x = tape.watch(fromArray('f32', [2, 1], [3, 5]))
      const weights = tape.watch(fromArray('f32', [2, 2], [1, 2, 3, 4]))
      const { y } = localExperts.run(x, fromArray('u8', [2, 2], [0, 1, 1, 0]), weights, 2, (rows) => scale(rows, 10))
      tape.backward([{ output: y, gradient: fromArray('f32', [2, 1], [1, 2]) }])
      expect(valuesOf(tape.gradient(x) as Tensor)).toEqual([30, 140])
      expect(valuesOf(tape.gradient(weights) as Tensor)).toEqual([30, 30, 100, 100])
    }),
  )
})

test('X6: an id that is no expert is refused', () => {
  scope(() => {
    const run = () => localExperts.run(zeros('f32', [1, 1]), fromArray('u8', [1, 1], [3]), zeros('f32', [1, 1]), 3, (rows) => rows)
    expect(run).toThrowError(expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID', path: 'moe-permute.plan.ids' }))
  })
})

test('replay of what was chosen has the same bits; missing rows choose for themselves where that is asked for', () => {
  scope(() => {
    const logits = fromArray('f32', [2, 4], [0.1, 0.4, 0.3, 0.2, 1, 2, 3, 4])
    const bias = fromArray('f32', [4], [1, 0, 0, 0])
    const sigmoid = (given: Tensor | null, selectMissing = false) =>
      sigmoidRouter(logits, { topK: 2, bias, isNormalised: true, scale: 2, given, selectMissing })
    const softmax = (given: Tensor | null, selectMissing = false) =>
      softmaxRouter(logits, { topK: 2, isNormalised: false, given, selectMissing })
    for (const route of [sigmoid, softmax]) {
      const chosen = route(null)
      expect(valuesOf(route(chosen.ids).weights)).toEqual(valuesOf(chosen.weights))
      const [first] = toArray(chosen.ids)
      const missing = fromArray('u8', [2, 2], [Number(first), 3, 255, 255])
      expect(() => route(missing)).toThrowError(expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID' }))
      expect(valuesOf(route(missing, true).ids)).toEqual([first, 3, ...valuesOf(chosen.ids).slice(2)])
    }
  })
})

test('ids have the smallest type in which none looks missing', () => {
  expect([255, 256, 257, 65_535, 65_537].map((experts) => expertIdType(experts, 1))).toEqual(['u8', 'u16', 'u16', 'u16', 'i32'])
  expect([256, 65_536].map((experts) => expertIdType(experts, 2))).toEqual(['u8', 'u16'])
})
