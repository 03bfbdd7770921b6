/** Every kind of parameter against central differences, in double: all ops run their references. */
import { checkGradient, liveTensors, scope } from '@trilithon/tensor'
import { someIds, type TinyFamily, tinyFamilies } from '@trilithon/testing'
import { afterEach, describe, expect, test } from 'vitest'
import { createModel, createPackedContext } from '../src/index.ts'
import { tinyConfig } from './tiny-models.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

describe.each(tinyFamilies)('%s', (family: TinyFamily) => {
  test('gradients are those of differences, with the choices of experts and keys held', () => {
    const model = createModel(tinyConfig(family), { seed: 5, dtype: 'f64' })
    const lengths = [3, 6]
    const ids = someIds(9, 19)
    scope(() => {
      const context = createPackedContext(lengths)
      const { routes, choices } = model.forward(ids, context, { recordRoutes: true, recordChoices: true })
      const trained = [...model.parameters()].filter(({ isTrainable }) => isTrainable)
      const report = checkGradient(
        () => {
          const { hidden } = model.forward(ids, createPackedContext(lengths), { routes, choices })
          return model.score(hidden, [...ids.slice(1), 0], { temperature: 0.8 }).logprobs
        },
        trained,
        { elements: 6, tolerance: 1e-6 },
      )
      expect(report.checked).toBeGreaterThan(trained.length)
      const frozen = [...model.parameters()].filter(({ isTrainable }) => !isTrainable).map(({ name }) => name)
      expect(frozen.every((name) => /indexer|e_score_correction_bias/.test(name))).toBe(true)
    })
    model.dispose()
  })
})
