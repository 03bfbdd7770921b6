/** MLA over chosen keys: against dense attention, against the unabsorbed form, and the indexer's own loss. */
import { type ChosenKeys, checkGradient, fromArray, liveTensors, record, scope, type Tensor, toArray, write } from '@trilithon/tensor'
import { someIds } from '@trilithon/testing'
import { afterEach, expect, test } from 'vitest'
import { createModel, createPackedContext, type Model } from '../src/index.ts'
import { largestDifference } from './golden.ts'
import { packedHidden, trainStep, valuesOf } from './running.ts'
import { tinyConfig } from './tiny-models.ts'
import { unabsorbedHidden } from './unabsorbed-oracle.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const documents = [someIds(9, 19, 3), someIds(14, 19, 5)]

const withModel = <T>(options: { config?: object; seed?: number; kl?: number; dtype?: 'f32' | 'f64' }, body: (model: Model) => T): T => {
  const { config = {}, seed = 4, kl = 0, dtype = 'f32' } = options
  const model = createModel(tinyConfig('glm_moe_dsa', config), { seed, dtype, indexKlWeight: kl })
  try {
    return body(model)
  } finally {
    model.dispose()
  }
}

test('a top-k of the longest document or more is dense attention', () => {
  const dense = withModel({}, (model) => packedHidden(model, documents, { denseAttention: true }))
  for (const topK of [14, 100]) {
    const chosen = withModel({ config: { index_topk: topK } }, (model) => packedHidden(model, documents))
    expect(largestDifference(chosen, dense)).toBeLessThan(1e-6)
  }
  const fewer = withModel({ config: { index_topk: 4 } }, (model) => packedHidden(model, documents))
  expect(largestDifference(fewer, dense)).toBeGreaterThan(1e-3)
})

test('the absorbed form is the unabsorbed one, over all keys and over chosen ones', () => {
  const ids = someIds(15, 19, 6)
  for (const dense of [true, false])
    withModel({}, (model) =>
      scope(() => {
        const { hidden, choices } = model.forward(ids, createPackedContext([ids.length]), { recordChoices: true, denseAttention: dense })
        const lists = new Map([...(choices ?? [])].map(([layer, choice]) => [layer, keysOf(choice)]))
        const expected = unabsorbedHidden(model, ids, (layer, row) => {
          if (dense) return Array.from({ length: row + 1 }, (_, key) => key)
          // Layer 1 shares the choice of layer 0.
          return lists.get(layer === 1 ? 0 : layer)?.[row] ?? []
        })
        expect(largestDifference(valuesOf(hidden), expected.flat())).toBeLessThan(1e-5)
      }),
    )
})

test('choices are sorted, of the document, at most top-k, and shared layers have none of their own', () => {
  withModel({}, (model) =>
    scope(() => {
      const { choices } = model.forward(documents.flat(), createPackedContext(documents.map(({ length }) => length)), {
        recordChoices: true,
      })
      expect([...(choices ?? new Map()).keys()]).toEqual([0, 2])
      const positions = documents.flatMap((document) => document.map((_, position) => position))
      for (const choice of choices?.values() ?? [])
        for (const [row, keys] of keysOf(choice).entries()) {
          const position = positions[row] as number
          expect(keys.length).toBe(Math.min(4, position + 1))
          expect(keys.every((key, index) => key <= position && (index === 0 || key > (keys[index - 1] as number)))).toBe(true)
        }
    }),
  )
})

test('the loss of the indexer reaches the indexer alone, and leaves the forward as it was', () => {
  const frozen = withModel({}, (model) => trainStep(model, documents))
  withModel({ kl: 1 }, (model) => {
    const trained = trainStep(model, documents)
    expect(trained.logprobs).toEqual(frozen.logprobs)
    for (const [name, gradient] of trained.gradients)
      if (name.includes('.indexer.'))
        expect(
          gradient.some((value) => value !== 0),
          name,
        ).toBe(true)
      else expect(gradient, name).toEqual(frozen.gradients.get(name))
    expect([...trained.gradients.keys()].filter((name) => !frozen.gradients.has(name))).toHaveLength(10)
    expect(trainStep(model, documents, { recompute: true })).toEqual(trained)
  })
})

test.each([false, true])('gradients of the loss of the indexer are those of differences; dense: %s', (dense) => {
  withModel({ kl: 1, dtype: 'f64' }, (model) => {
    const ids = someIds(9, 19)
    scope(() => {
      const forward = (choices: ReadonlyMap<number, ChosenKeys> | null) =>
        model.forward(ids, createPackedContext([3, 6]), { choices, recordChoices: true, denseAttention: dense })
      const { choices } = forward(null)
      const indexers = [...model.parameters()].filter(({ name }) => name.includes('.indexer.'))
      checkGradient(() => [...forward(choices).indexLosses.values()], indexers, { elements: 8, tolerance: 1e-6 })
    })
  })
})

test('steps along the gradient make the loss of the indexer smaller', () => {
  // Over all keys: the set does not change while it learns.
  withModel({ kl: 1 }, (model) => {
    const step = () =>
      record((tape) => {
        const { indexLosses } = model.forward(documents.flat(), createPackedContext(documents.map(({ length }) => length)), {
          denseAttention: true,
        })
        const losses = [...indexLosses.values()]
        tape.backward(
          losses.map((output) => ({ output, gradient: fromArray('f32', output.shape, new Float32Array(output.elements).fill(1)) })),
        )
        return losses.reduce((sum, loss) => sum + valuesOf(loss).reduce((total, kl) => total + kl, 0), 0)
      })
    const first = step()
    for (let i = 0; i < 30; i++) {
      for (const parameter of model.parameters()) {
        if (parameter.gradient === null) continue
        const gradient = valuesOf(parameter.gradient)
        descend(parameter.value, gradient, 0.1)
        parameter.zeroGradient()
      }
      step()
    }
    const last = step()
    for (const parameter of model.parameters()) parameter.zeroGradient()
    expect(first).toBeGreaterThan(0)
    expect(last).toBeLessThan(0.8 * first)
  })
})

function keysOf({ indices, counts }: ChosenKeys): number[][] {
  const [all, sizes] = [toArray(indices) as Int32Array, toArray(counts) as Int32Array]
  const width = indices.dim(1)
  return Array.from(sizes, (size, row) => [...all.subarray(row * width, row * width + size)])
}

function descend(value: Tensor, gradient: Float32Array, rate: number): void {
  const values = valuesOf(value)
  write(
    value,
    values.map((element, i) => element - rate * (gradient[i] as number)),
  )
}
