import { fromArray, liveTensors, noGrad, record, scope, write } from '@trilithon/tensor'
import { afterEach, expect, test } from 'vitest'
import { tinyConfig } from '../../test/tiny-models.ts'
import { createModel, createPackedContext } from '../index.ts'
import { chosenShare } from './chosen-share.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const share = (rows: readonly (readonly number[])[], ids: readonly (readonly number[])[], scores: 'softmax' | 'sigmoid') =>
  scope(() => {
    const logits = fromArray('f32', [rows.length, rows[0]?.length ?? 0], rows.flat())
    return chosenShare(logits, fromArray('u8', [ids.length, ids[0]?.length ?? 0], ids.flat()), scores)
  })
const [ln2, ln3] = [Math.log(2), Math.log(3)]

test('softmax: the probability of the chosen experts, summed over tokens', () => {
  // 1 : 2 : 3 and, shifted by 50, 3 : 1 : 2.
  const rows = [
    [0, ln2, ln3],
    [50 + ln3, 50, 50 + ln2],
  ]
  expect(share(rows, [[1], [0]], 'softmax')).toBeCloseTo(2 / 6 + 3 / 6, 5)
  const pairs = [
    [2, 1],
    [0, 2],
  ]
  expect(share(rows, pairs, 'softmax')).toBeCloseTo(5 / 6 + 5 / 6, 5)
  expect(share([[1000, 0, 0]], [[0]], 'softmax')).toBe(1)
})

test('sigmoid: the scores of the chosen experts over those of all', () => {
  // 1/2, 1/2, 3/4.
  expect(share([[0, 0, ln3]], [[2, 0]], 'sigmoid')).toBeCloseTo(1.25 / 1.75, 6)
  expect(share([[-2000, -2000, -2000]], [[2, 0]], 'sigmoid')).toBe(0)
})

test.each([
  ['qwen3_moe', [1]],
  ['glm_moe_dsa', [1, 2]],
] as const)(
  '%s: where the gates say nothing, every layer has k / E for each token; measuring changes no bit and follows given routes',
  (family, layers) => {
    const model = createModel(tinyConfig(family), { seed: 3 })
    const ids = [1, 2, 3, 4, 5, 6, 7]
    const forward = (options: object) => {
      const { hidden, routes, chosenShares } = model.forward(ids, createPackedContext([4, 3]), { recordRoutes: true, ...options })
      return { hidden, routes, chosenShares }
    }
    noGrad(() =>
      scope(() => {
        expect(forward({}).chosenShares).toEqual(new Map())
        const measured = forward({ measureRouting: true })
        expect([...measured.chosenShares.keys()]).toEqual(layers)
        expect(measured.routes).toEqual(forward({}).routes)
        for (const value of measured.chosenShares.values()) expect(value / 7).toBeGreaterThan(2 / 6)
        const replayed = forward({ measureRouting: true, routes: measured.routes })
        expect(replayed.chosenShares).toEqual(measured.chosenShares)
      }),
    )
    record(() => scope(() => expect(forward({ measureRouting: true, recompute: true }).chosenShares.size).toBe(layers.length)))
    for (const parameter of model.parameters())
      if (parameter.name.endsWith('.gate.weight')) write(parameter.value, new Float32Array(parameter.elements))
    const experts = family === 'qwen3_moe' ? 5 : 6
    noGrad(() =>
      scope(() => {
        for (const value of forward({ measureRouting: true }).chosenShares.values()) expect(value).toBeCloseTo((7 * 2) / experts, 10)
      }),
    )
    model.dispose()
  },
)
