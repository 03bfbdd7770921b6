import { afterEach, expect, test } from 'vitest'
import {
  checkpoint,
  fromArray,
  liveTensors,
  localParameters,
  normal,
  Parameter,
  type ParameterGathering,
  record,
  rmsNorm,
  scope,
  type Tensor,
  toArray,
  withUnit,
  write,
} from '../index.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const parameterOf = (unit: string) => new Parameter({ name: `${unit}.weight`, shape: [4], unit, initialiser: normal(1) }).initialise(1)

function recording(inner: ParameterGathering): { readonly gathering: ParameterGathering; readonly calls: string[] } {
  const calls: string[] = []
  const call = (name: keyof ParameterGathering) => (unit: string) => {
    calls.push(`${name} ${unit}`)
    inner[name](unit)
  }
  return { gathering: { need: call('need'), release: call('release'), gradientsReady: call('gradientsReady') }, calls }
}

function backward(body: (x: Tensor) => Tensor): void {
  scope(() =>
    record((tape) => {
      const output = body(fromArray('f32', [2, 4], [1, 2, 3, 4, 5, 6, 7, 9]))
      tape.backward([{ output, gradient: fromArray('f32', [2, 4], [1, 0, 2, 0, 3, 0, 4, 0]) }])
    }),
  )
}

test('G6, G7, G8: pairs forwards and backwards, in reverse, gradients once after the last use', () => {
  const first = parameterOf('first')
  const second = parameterOf('second')
  const { gathering, calls } = recording(localParameters(['first', 'second']))
  const layer = (weight: Parameter, x: Tensor) =>
    withUnit(gathering, weight.unit, () => checkpoint((input) => rmsNorm(input, weight.value, 1e-5), x))
  backward((x) => layer(first, layer(second, layer(first, x))))
  expect(calls).toEqual([
    ...['need first', 'release first', 'need second', 'release second', 'need first', 'release first'],
    ...['need first', 'release first', 'need second', 'gradientsReady second', 'release second'],
    ...['need first', 'gradientsReady first', 'release first'],
  ])
  first.dispose()
  second.dispose()
})

test('G6: a body that throws releases', () => {
  const { gathering, calls } = recording(localParameters(['first']))
  expect(() =>
    withUnit(gathering, 'first', () => {
      throw new Error('inside')
    }),
  ).toThrowError('inside')
  expect(calls).toEqual(['need first', 'release first'])
})

test('G6: a backward step that throws releases', () => {
  const weight = parameterOf('first')
  const { gathering, calls } = recording(localParameters(['first']))
  expect(() =>
    backward((x) =>
      withUnit(gathering, 'first', () => {
        const y = rmsNorm(x, weight.value, 1e-5)
        write(weight.value, [1, 2, 3, 4])
        return y
      }),
    ),
  ).toThrowError(expect.objectContaining({ path: 'rms-norm.backward' }))
  expect(calls).toEqual(['need first', 'release first', 'need first', 'release first'])
  weight.dispose()
})

test('G4: unknown and unneeded units are refused by name; a unit inside a checkpoint too', () => {
  const local = localParameters(['first'])
  const refusal = (op: string, given: string) =>
    expect.objectContaining({ path: `${op}.unit`, details: expect.objectContaining({ given }) })
  expect(() => local.need('other')).toThrowError(refusal('need', 'other'))
  expect(() => local.release('first')).toThrowError(refusal('release', 'first, which is not'))
  const weight = parameterOf('first')
  expect(() => backward((x) => checkpoint((input) => withUnit(local, 'first', () => rmsNorm(input, weight.value, 1e-5)), x))).toThrowError(
    refusal('withUnit', 'unit first inside of one'),
  )
  weight.dispose()
})

test('G1: a value that is given back after the forward and comes again for the backward gives the same gradient', () => {
  const weight = parameterOf('unit')
  backward((x) => rmsNorm(rmsNorm(x, weight.value, 1e-5), weight.value, 1e-5))
  const expected = toArray(weight.gradient as Tensor)
  const stored = toArray(weight.value)
  expect(weight.value.writes).toBe(1)
  weight.dispose()
  let needed = 0
  const gathering: ParameterGathering = {
    need: () => void (needed++ === 0 && weight.place(fromArray('f32', [4], stored))),
    release: () => void (--needed === 0 && weight.take().dispose()),
    gradientsReady: () => expect(needed).toBe(1),
  }
  backward((x) => withUnit(gathering, 'unit', () => rmsNorm(rmsNorm(x, weight.value, 1e-5), weight.value, 1e-5)))
  expect(weight.isMeta).toBe(true)
  expect(toArray(weight.gradient as Tensor)).toEqual(expected)
  weight.dispose()
})
