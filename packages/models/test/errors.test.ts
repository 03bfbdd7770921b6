/** What a caller can get wrong: a coded error that names the call and the argument, and nothing is left behind. */
import { TrilithonError } from '@trilithon/core'
import { liveTensors, record, scope, write } from '@trilithon/tensor'
import { someIds } from '@trilithon/testing'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { createModel, createPackedContext, createPagedContext, KVPages, Model } from '../src/index.ts'
import { tinyConfig } from './tiny-models.ts'

const dense = createModel(tinyConfig('qwen3'), { seed: 1 })
const sparse = createModel(tinyConfig('qwen3_moe'), { seed: 1 })
const pages = new KVPages(dense.config, 4, 4)
const before = liveTensors().tensors
afterEach(() => expect(liveTensors().tensors).toBe(before))
afterAll(() => {
  for (const each of [dense, sparse, pages]) each.dispose()
})

const failure = (run: () => unknown): TrilithonError => {
  try {
    scope(run)
  } catch (error) {
    if (TrilithonError.is(error)) return error
    throw error
  }
  throw new Error('it was taken')
}

describe('token ids', () => {
  test.each([
    [19, 'ids: expected token ids from 0 to 18, given 19 in row 1'],
    [-1, 'given -1 in row 1'],
    [0.5, 'given 0.5 in row 1'],
    [Number.NaN, 'given NaN in row 1'],
  ])('%s', (id, text) => {
    expect(failure(() => dense.forward([0, id, 2], createPackedContext([3])))).toMatchObject({
      code: 'NATIVE_ARGUMENT_INVALID',
      path: 'forward.ids',
      message: expect.stringContaining(text),
    })
    expect(failure(() => dense.score(dense.forward([0, 1, 2], createPackedContext([3])).hidden, [0, id, 2]))).toMatchObject({
      path: 'score.targets',
    })
  })

  test('as many as rows', () => {
    expect(failure(() => dense.forward([0, 1], createPackedContext([3])))).toMatchObject({ path: 'forward.ids' })
    expect(failure(() => dense.score(dense.forward([0, 1], createPackedContext([2])).hidden, [0]))).toMatchObject({ path: 'score.targets' })
  })

  test('at a temperature', () => {
    const score = (temperature: number | number[]) => () =>
      dense.score(dense.forward([0, 1], createPackedContext([2])).hidden, [0, 1], { temperature })
    for (const temperature of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, [1, 0], [1]])
      expect(failure(score(temperature))).toMatchObject({ code: 'NATIVE_ARGUMENT_INVALID', path: 'score.temperature' })
  })
})

describe('documents', () => {
  test.each([[[]], [[0]], [[3, -1]], [[2.5]], [[Number.NaN]]])('of lengths %j are refused', (lengths: number[]) => {
    expect(failure(() => createPackedContext(lengths))).toMatchObject({
      code: 'NATIVE_ARGUMENT_INVALID',
      path: expect.stringMatching(/^createPackedContext\.lengths/),
    })
  })

  test('longer than the model has positions', () => {
    expect(failure(() => dense.forward(someIds(65, 19), createPackedContext([65])))).toMatchObject({
      path: 'forward.context',
      message: expect.stringContaining('at most 64 tokens, given position 64'),
    })
  })
})

describe('pages', () => {
  const one = { newTokens: 3, cachedTokens: 2, pages: [0, 1] }
  test.each([
    [[], 'sequences'],
    [[{ ...one, newTokens: 0 }], 'sequences[0].newTokens'],
    [[{ ...one, cachedTokens: -1 }], 'sequences[0].cachedTokens'],
    [[{ ...one, pages: [0] }], 'sequences[0].pages'],
    [[{ ...one, pages: [0, 4] }], 'sequences[0].pages[1]'],
    [[one, { ...one, pages: [2, 1] }], 'sequences[1].pages[1]'],
  ])('%# is refused', (sequences, argument) => {
    expect(failure(() => createPagedContext(pages, sequences))).toMatchObject({
      code: 'NATIVE_ARGUMENT_INVALID',
      path: `createPagedContext.${argument}`,
    })
  })

  test('shared where no sequence writes are taken', () => {
    const sharing = [
      { newTokens: 1, cachedTokens: 4, pages: [0, 1] },
      { newTokens: 1, cachedTokens: 4, pages: [0, 2] },
    ]
    scope(() => void createPagedContext(pages, sharing))
    expect(failure(() => new KVPages(dense.config, 0, 4))).toMatchObject({ path: 'KVPages.pages' })
  })

  test('do not record gradients', () => {
    expect(
      failure(() => record(() => dense.forward([1], createPagedContext(pages, [{ newTokens: 1, cachedTokens: 0, pages: [0] }])))),
    ).toMatchObject({
      code: 'NATIVE_ARGUMENT_INVALID',
    })
  })
})

describe('routed experts', () => {
  const ids = [1, 2, 3]
  const routesOf = () =>
    scope(() => sparse.forward(ids, createPackedContext([3]), { recordRoutes: true }).routes) as NonNullable<
      ReturnType<Model['forward']>['routes']
    >
  const given = (change: object) => () => sparse.forward(ids, createPackedContext([3]), { routes: { ...routesOf(), ...change } })

  test('of another layout', () => {
    for (const change of [{ dtype: 'uint16' }, { shape: [3, 1, 3] }, { shape: [2, 1, 2] }, { data: new Uint8Array(5) }])
      expect(failure(given(change))).toMatchObject({ code: 'PAYLOAD_INVALID', path: 'forward.routes' })
  })

  test('that are missing, or that the model does not have', () => {
    expect(failure(given({ data: new Uint8Array(6).fill(255) }))).toMatchObject({
      code: 'NATIVE_ARGUMENT_INVALID',
      message: expect.stringContaining('missing row'),
    })
    expect(failure(given({ data: new Uint8Array(6).fill(5) }))).toMatchObject({
      code: 'NATIVE_ARGUMENT_INVALID',
      message: expect.stringContaining('experts from 0 to 4'),
    })
  })

  test('of a model without experts', () => {
    expect(failure(() => dense.forward(ids, createPackedContext([3]), { routes: routesOf() }))).toMatchObject({ path: 'forward.routes' })
  })
})

describe('weights', () => {
  test('on meta: the parameter is named', () => {
    expect(failure(() => new Model(dense.config).forward([1], createPackedContext([1])))).toMatchObject({
      path: 'Parameter.model.embed_tokens.weight',
      message: expect.stringContaining('on meta'),
    })
  })

  test('that are not numbers: the router says which token', () => {
    const gate = sparse.weights.get('model.layers.1.mlp.gate.weight')?.value
    if (gate === undefined) throw new Error('no gate')
    const model = createModel(sparse.config, { seed: 1 })
    const broken = model.weights.get('model.layers.1.mlp.gate.weight')
    write(broken?.value as typeof gate, new Float32Array(gate.elements).fill(Number.NaN))
    expect(failure(() => model.forward([1, 2], createPackedContext([2])))).toMatchObject({
      code: 'NATIVE_ARGUMENT_INVALID',
      message: expect.stringContaining('NaN or infinity for token 0'),
    })
    model.dispose()
  })

  test('of another shape do not fit a parameter', () => {
    const weight = dense.weights.get('model.norm.weight')
    const model = new Model(sparse.config)
    expect(failure(() => model.weights.get('lm_head.weight')?.place(weight?.value as NonNullable<typeof weight>['value']))).toMatchObject({
      path: 'place.lm_head.weight',
    })
  })

  test('that changed behind a second layout are refused', () => {
    const model = createModel(dense.config, { seed: 1 })
    model.packProjections()
    const weight = model.weights.get('model.layers.0.mlp.up_proj.weight')
    weight?.initialise(2)
    expect(failure(() => model.forward([1], createPackedContext([1])))).toMatchObject({
      code: 'NATIVE_ARGUMENT_INVALID',
      path: 'linear.packed',
    })
    model.dispose()
  })
})
