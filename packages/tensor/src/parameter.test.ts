import { afterEach, expect, test } from 'vitest'
import { collectParameters, constant, countElements, fromArray, liveTensors, normal, Parameter, scope, toArray, uniform } from './index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const refusal = (path: string, given: unknown) =>
  expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID', path, details: expect.objectContaining({ given }) })

test('a model of 744 billion parameters is declared and counted without memory', () => {
  const layers = Array.from({ length: 78 }, (_, layer) => ({
    experts: new Parameter({ name: `layers.${layer}.experts`, shape: [256, 4096, 6144], kind: 'expert', unit: `layers.${layer}` }),
    norm: new Parameter({ name: `layers.${layer}.norm`, shape: [6144] }),
  }))
  expect(countElements(collectParameters({ layers }))).toBe(78 * (256 * 4096 * 6144 + 6144))
  expect(liveTensors().bytes).toBe(0)
  expect(() => layers[0]?.norm.value).toThrowError(refusal('Parameter.layers.0.norm', 'a parameter on meta: allocate or gather it first'))
})

test('parameters are found in order of declaration, tied ones once, two of a name never', () => {
  const tied = new Parameter({ name: 'tied', shape: [2] })
  const other = new Parameter({ name: 'other', shape: [2] })
  const moduled = { parameters: () => [other], ignored: new Parameter({ name: 'ignored', shape: [2] }) }
  const tree = { embedding: tied, layers: [moduled, new Map([['head', tied]])], size: 3, date: new Date() }
  expect(collectParameters(tree).map(({ name }) => name)).toEqual(['tied', 'other'])
  expect(() => collectParameters([tied, new Parameter({ name: 'tied', shape: [2] })])).toThrowError(
    refusal('collectParameters.tied', 'two'),
  )
})

test('starting values depend on seed and name alone, in any order and any slice', () => {
  const values = (name: string, seed: number) => {
    const parameter = new Parameter({ name, shape: [10, 7], initialiser: normal(0.02) }).initialise(seed)
    const array = toArray(parameter.value) as Float32Array
    parameter.dispose()
    return array
  }
  const first = values('a', 1)
  expect(values('b', 1)).not.toEqual(first)
  expect(values('a', 2)).not.toEqual(first)
  expect(values('a', 1 + 2 ** 32)).not.toEqual(first)
  expect(values('a', 1)).toEqual(first)
  const part = new Float32Array(13)
  normal(0.02).fill(part, 1, 'a', 29)
  expect(part).toEqual(first.slice(29, 42))
})

test('allocation is explicit and single; shapes are checked', () => {
  const parameter = new Parameter({ name: 'p', shape: [2, 2], initialiser: constant(3) }).allocate()
  expect(() => parameter.allocate()).toThrowError(refusal('allocate.p', 'one that has a value'))
  expect([...toArray(parameter.initialise(0).value)]).toEqual([3, 3, 3, 3])
  scope(() => expect(() => parameter.place(fromArray('f32', [4], [1, 2, 3, 4]))).toThrowError(refusal('place.p', 'one that has a value')))
  const taken = parameter.take()
  expect(parameter.isMeta).toBe(true)
  taken.dispose()
  scope(() => expect(() => parameter.place(fromArray('f32', [4], [1, 2, 3, 4]))).toThrowError(refusal('place.p', 'f32 [4]')))
  parameter.dispose()
  expect(() => new Parameter({ name: 'p', shape: [0] })).toThrowError(refusal('Parameter.p', '[0]'))
  expect(() => new Parameter({ name: 'p', shape: [2], initialiser: uniform(0, 1) }).initialise(-1)).toThrowError(
    refusal('CounterRandom.seed', '-1'),
  )
})

test('a parameter outlives the scope that it was allocated in', () => {
  const parameter = scope(() => new Parameter({ name: 'p', shape: [2] }).initialise(0))
  expect([...toArray(parameter.value)]).toEqual([0, 0])
  parameter.dispose()
  expect(parameter.isMeta).toBe(true)
})
