import { afterEach, expect, test } from 'vitest'
import {
  checkGradient,
  checkpoint,
  detach,
  fromArray,
  liveTensors,
  normal,
  Parameter,
  record,
  reshape,
  rmsNorm,
  scope,
  slice,
  split,
  type Tensor,
  toArray,
} from './index.ts'

const parameters: Parameter[] = []

afterEach(() => {
  for (const parameter of parameters.splice(0)) parameter.dispose()
  expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 })
})

function parameter(name: string, shape: readonly number[], dtype: 'f32' | 'f64' = 'f32'): Parameter {
  const made = new Parameter({ name, shape, initialiser: normal(1, 0.5) }).initialise(7, dtype)
  parameters.push(made)
  return made
}

const refusal = (op: string, argument: string) =>
  expect.objectContaining({ code: 'NATIVE_ARGUMENT_INVALID', details: expect.objectContaining({ op, argument }) })

const ones = (shape: readonly number[]) => fromArray('f32', shape, new Float32Array(shape.reduce((count, size) => count * size, 1)).fill(1))

/** A chain in which both weights are used more than once, whole and in part. */
function chain(x: Tensor, first: Tensor, second: Tensor): Tensor {
  const a = rmsNorm(rmsNorm(x, first, 1e-5), second, 1e-5)
  const b = rmsNorm(reshape(a, [4, 3]), slice(second, 0, 1, 4), 1e-5)
  const [left, right] = split(rmsNorm(reshape(b, [2, 6]), first, 1e-5), 1, [2, 4]) as [Tensor, Tensor]
  const ends = rmsNorm(slice(rmsNorm(right, slice(first, 0, 2, 6), 1e-5), 1, 0, 2), slice(second, 0, 0, 2), 1e-5)
  return rmsNorm(left, reshape(slice(ends, 0, 0, 1), [2]), 1e-5)
}

test('gradients of a chain are those of differences', () => {
  scope(() => {
    const inputs = [parameter('x', [2, 6], 'f64'), parameter('first', [6], 'f64'), parameter('second', [6], 'f64')]
    const report = checkGradient((x, first, second) => chain(x as Tensor, first as Tensor, second as Tensor), inputs)
    expect(report.checked).toBe(24)
  })
})

test('a wrong gradient is found', () => {
  scope(() => {
    const x = fromArray('f64', [1, 4], [1, 2, 3, 5])
    const weight = fromArray('f64', [4], [1, 2, 3, 4])
    expect(() => checkGradient((input, w) => rmsNorm(input as Tensor, detach(w as Tensor), 0), [x, weight])).toThrowError(
      expect.objectContaining({ code: 'INVARIANT_BROKEN', path: 'inputs[1]' }),
    )
    expect(() => checkGradient((input) => input as Tensor, [ones([1])])).toThrowError(refusal('checkGradient', 'inputs[0]'))
  })
})

function gradientsOf(body: (x: Tensor, first: Tensor, second: Tensor) => Tensor): readonly Float32Array[] {
  const first = parameter('first', [6])
  const second = parameter('second', [6])
  return scope(() =>
    record((tape) => {
      const x = tape.watch(fromArray('f32', [2, 6], [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]))
      const y = body(x, first.value, second.value)
      tape.backward([
        {
          output: y,
          gradient: fromArray(
            'f32',
            y.shape,
            Array.from({ length: y.elements }, (_, i) => Math.sin(1 + i)),
          ),
        },
      ])
      return [tape.gradient(x), first.gradient, second.gradient].map((gradient) => toArray(gradient as Tensor) as Float32Array)
    }),
  )
}

test('repetition and recomputation give the same bits', () => {
  const plain = gradientsOf(chain)
  expect(gradientsOf(chain)).toEqual(plain)
  expect(gradientsOf((...inputs) => checkpoint(chain, ...inputs))).toEqual(plain)
  // The weights need not be arguments; and checkpoints nest.
  expect(gradientsOf((x, first, second) => checkpoint((input) => chain(input, first, second), x))).toEqual(plain)
  expect(gradientsOf((x, first, second) => checkpoint((input) => checkpoint((again) => chain(again, first, second), input), x))).toEqual(
    plain,
  )
})

test('a tensor used inside and outside of a checkpoint sums in the order without it', () => {
  // x goes in three times: as rows and twice as the weight of a row.
  const row = (x: Tensor, begin: number) => slice(reshape(x, [12]), 0, begin, begin + 6)
  const inner = (x: Tensor) => rmsNorm(rmsNorm(x, row(x, 2), 1e-3), row(x, 5), 1e-3)
  const outer = (inside: (x: Tensor) => Tensor) => (x: Tensor, first: Tensor, second: Tensor) =>
    rmsNorm(rmsNorm(rmsNorm(inside(x), row(x, 1), 1e-3), first, 1e-3), second, 1e-3)
  expect(gradientsOf(outer((x) => checkpoint(inner, x)))).toEqual(gradientsOf(outer(inner)))
})
