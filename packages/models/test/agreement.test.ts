/** Two different ways to the same bits: packed or alone, in pages or not, recomputed or kept, replayed or chosen, in another process. */
import { liveTensors, scope } from '@trilithon/tensor'
import { someIds, type TinyFamily, tinyFamilies } from '@trilithon/testing'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createModel, createPackedContext, type Model } from '../src/index.ts'
import { packedHidden, pagedHidden, trainStep, valuesOf } from './running.ts'
import { tinyConfig } from './tiny-models.ts'

describe.each(tinyFamilies)('%s', (family: TinyFamily) => {
  let model: Model
  let before: number
  const documents = [someIds(7, 19, 3), someIds(1, 19, 4), someIds(18, 19, 5)]
  beforeAll(() => {
    before = liveTensors().tensors
    model = createModel(tinyConfig(family), { seed: 3 })
  })
  afterEach(() => expect(liveTensors().tensors - before).toBe(model.weights.size))
  afterAll(() => {
    model.dispose()
    expect(liveTensors().tensors).toBe(before)
  })

  test('packed documents are bit for bit what each is alone', () => {
    const packed = packedHidden(model, documents)
    expect(packed.every(Number.isFinite)).toBe(true)
    expect(packed).toEqual(Float32Array.from(documents.flatMap((document) => [...packedHidden(model, [document])])))
  })

  test.each([
    ['at once, blocks of 4', [100], 4],
    ['token by token, blocks of 1', [1], 1],
    ['token by token, blocks of 16', [1], 16],
    ['in uneven pieces, blocks of 3', [2, 5, 1, 3], 3],
    ['a prompt, then single tokens, blocks of 8', [6, 1, 1, 1, 1, 1, 1, 1], 8],
  ])('prefill and decode over pages have the bits of the packed forward: %s', (_, pieces, blockSize) => {
    const alone = documents.map((document) => packedHidden(model, [document]))
    expect(pagedHidden(model, documents, pieces, blockSize)).toEqual(alone)
  })

  test('second layouts of the weights change no bit', () => {
    const plain = packedHidden(model, documents)
    model.packProjections()
    try {
      expect(packedHidden(model, documents)).toEqual(plain)
      expect(pagedHidden(model, documents, [1], 4)).toEqual(documents.map((document) => packedHidden(model, [document])))
    } finally {
      model.unpackProjections()
    }
  })

  test('recomputation in the backward, and repetition, give the same bits', () => {
    const kept = trainStep(model, documents)
    expect(trainStep(model, documents)).toEqual(kept)
    expect(trainStep(model, documents, { recompute: true })).toEqual(kept)
    for (const [name, gradient] of kept.gradients)
      expect(
        gradient.some((value) => value !== 0),
        name,
      ).toBe(true)
  })

  test('30 steps take no more tensors and no more bytes than two', () => {
    for (let i = 0; i < 2; i++) trainStep(model, documents)
    const memory = liveTensors()
    for (let i = 0; i < 30; i++) trainStep(model, documents, { recompute: i % 2 === 1 })
    expect(liveTensors()).toEqual(memory)
  })

  test('replay of its own choices gives the bits of no replay; of other choices it does not', () => {
    scope(() => {
      const context = createPackedContext(documents.map(({ length }) => length))
      const chosen = model.forward(documents.flat(), context, { recordRoutes: true, recordChoices: true })
      const { routes, choices } = chosen
      const plain = trainStep(model, documents)
      expect(routes === null).toBe(model.routedLayout === null)
      expect(trainStep(model, documents, { routes, choices })).toEqual(plain)
      expect(trainStep(model, documents, { routes, choices, recompute: true })).toEqual(plain)
      if (routes === null) return
      const missing = { ...routes, data: routes.data.map((byte, index) => (index < routes.data.length / 2 ? 0xff : byte)) }
      expect(trainStep(model, documents, { routes: missing, selectMissing: true })).toEqual(plain)
      const { experts } = model.config as unknown as { experts: number }
      const moved = { ...routes, data: routes.data.map((expert) => (expert + 1) % experts) }
      expect(trainStep(model, documents, { routes: moved }).logprobs).not.toEqual(plain.logprobs)
      expect(valuesOf(chosen.hidden)).toEqual(packedHidden(model, documents))
    })
  })
})

test('more than 255 experts travel as two bytes, and are replayed bit for bit', () => {
  const model = createModel(tinyConfig('qwen3_moe', { num_experts: 300 }), { seed: 3 })
  const ids = someIds(9, 19)
  const { routes } = scope(() => {
    const result = model.forward(ids, createPackedContext([9]), { recordRoutes: true })
    return { routes: result.routes }
  })
  expect(routes).toMatchObject({ dtype: 'uint16', shape: [9, 1, 2] })
  expect(new Uint16Array(routes?.data.slice().buffer ?? new ArrayBuffer(0)).some((expert) => expert > 255)).toBe(true)
  expect(trainStep(model, [ids], { routes })).toEqual(trainStep(model, [ids]))
  model.dispose()
})
