/** Asks every op the same questions: differences in double, precision, single rows, recomputation, which inputs need gradients, leaks. */
import { afterEach, describe, expect, test } from 'vitest'
import {
  CounterRandom,
  checkGradient,
  checkpoint,
  fromArray,
  liveTensors,
  normal,
  record,
  scope,
  slice,
  type Tensor,
  toArray,
} from '../src/index.ts'
import { type OpCase, opCases } from './op-cases.ts'

afterEach(() => expect(liveTensors()).toMatchObject({ tensors: 0, bytes: 0 }))

const listOf = (result: Tensor | readonly Tensor[]) => (Array.isArray(result) ? result : [result]) as readonly Tensor[]
const valuesOf = (tensor: Tensor) => Array.from(toArray(tensor) as Float32Array)

function inputsOf({ name, inputs }: OpCase, dtype: 'f32' | 'f64'): Tensor[] {
  return inputs.map((shape, index) => {
    // Rounded to f32 in both, so that the two precisions start from the same numbers.
    const values = new Float32Array(shape.reduce((count, size) => count * size, 1))
    normal(1).fill(values, 11, `${name} ${index}`, 0)
    return fromArray(dtype, shape, dtype === 'f32' ? values : Float64Array.from(values))
  })
}

/** Results, and gradients of the inputs in `watched`, for random weights of the results. */
function gradientsOf(op: OpCase, watched: readonly number[], wrap: OpCase['run'] = op.run): { results: number[][]; gradients: number[][] } {
  return scope(() =>
    record((tape) => {
      const inputs = inputsOf(op, 'f32')
      for (const index of watched) tape.watch(inputs[index] as Tensor)
      const outputs = listOf(wrap(...inputs)).filter((output) => output.dtype === 'f32')
      const results = outputs.map(valuesOf)
      const random = new CounterRandom(5, op.name)
      const seeds = outputs
        .filter((output) => output.slot !== null)
        .map((output) => ({
          output,
          gradient: fromArray(
            'f32',
            output.shape,
            Array.from({ length: output.elements }, (_, i) => 2 * random.uniform(i) - 1),
          ),
        }))
      tape.backward(seeds)
      return { results, gradients: watched.map((index) => valuesOf(tape.gradient(inputs[index] as Tensor) as Tensor)) }
    }),
  )
}

describe.each(opCases)('$name', (op) => {
  const all = op.inputs.map((_, index) => index)

  test('gradients are those of differences', () => {
    scope(() => checkGradient(op.run, inputsOf(op, 'f64')))
  })

  test('single precision is close to double', () => {
    scope(() => {
      const double = listOf(op.run(...inputsOf(op, 'f64')))
      const single = listOf(op.run(...inputsOf(op, 'f32')))
      for (const [index, output] of single.entries())
        for (const [i, value] of valuesOf(output).entries())
          expect(Math.abs(value - Number(toArray(double[index] as Tensor)[i]))).toBeLessThan(1e-5 * Math.max(1, Math.abs(value)))
    })
  })

  test('repetition, and recomputation in the backward, give the same bits', () => {
    const plain = gradientsOf(op, all)
    expect(gradientsOf(op, all)).toEqual(plain)
    expect(gradientsOf(op, all, (...inputs) => checkpoint(op.run as (...inputs: Tensor[]) => readonly Tensor[], ...inputs))).toEqual(plain)
  })

  test('each gradient alone has the bits that it has among all', () => {
    const { gradients } = gradientsOf(op, all)
    for (const index of all) expect(gradientsOf(op, [index]).gradients).toEqual([gradients[index]])
  })

  if (op.rows === undefined) return

  test('a row alone gives the same bits', () => {
    scope(() => {
      const inputs = inputsOf(op, 'f32')
      const [whole] = listOf(op.run(...inputs)) as [Tensor]
      for (let row = 0; row < whole.dim(0); row++) {
        const [alone] = listOf(op.run(...inputs.map((input, index) => (op.rows?.includes(index) ? slice(input, 0, row, row + 1) : input))))
        expect(valuesOf(alone as Tensor)).toEqual(valuesOf(slice(whole, 0, row, row + 1)))
      }
    })
  })
})
