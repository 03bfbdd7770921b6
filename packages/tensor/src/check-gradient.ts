import { TrilithonError } from '@trilithon/core'
import { Parameter } from './parameter.ts'
import { CounterRandom } from './random/counter-random.ts'
import { refuse } from './refuse.ts'
import { scope } from './scope.ts'
import { noGrad, record } from './tape.ts'
import { describeShape, fromArray, type Tensor, toArray, write } from './tensor.ts'

export interface GradientCheckOptions {
  /** Largest allowed |analytic - numeric| / max(1, |analytic|, |numeric|). 1e-7 unless said otherwise. */
  readonly tolerance?: number
  /** Distance of the two points of a difference. 1e-5 unless said otherwise. */
  readonly step?: number
  /** Most elements that are checked of each input, spread evenly. All unless said otherwise. */
  readonly elements?: number
  /** Of the random weights that the results are summed with. */
  readonly seed?: number
}

export interface GradientReport {
  readonly checked: number
  /** The largest deviation found, in the measure of `tolerance`. */
  readonly worst: number
}

/**
 * Compares the gradients of `body` with central differences, in double: every input is f64, so every op runs its reference.
 *
 * `body` gets the tensors of `inputs` (of a parameter its value) and returns one tensor or several. It must be smooth where it is asked:
 * selections (top-k) must not flip within a step. Throws `INVARIANT_BROKEN` at the first element that deviates.
 */
export function checkGradient(
  body: (...inputs: Tensor[]) => Tensor | readonly Tensor[],
  inputs: readonly (Tensor | Parameter)[],
  options: GradientCheckOptions = {},
): GradientReport {
  const { tolerance = 1e-7, step = 1e-5, elements = Number.POSITIVE_INFINITY, seed = 0 } = options
  const tensors = inputs.map((input) => (input instanceof Parameter ? input.value : input))
  for (const [index, tensor] of tensors.entries())
    if (tensor.dtype !== 'f64') refuse('checkGradient', `inputs[${index}]`, 'dtype f64', describeShape(tensor))
  const outputsOf = () => {
    const result = body(...tensors)
    return (Array.isArray(result) ? result : [result]) as readonly Tensor[]
  }
  const weightOf = (output: Tensor, index: number) => {
    const random = new CounterRandom(seed, `output ${index}`)
    return Float64Array.from({ length: output.elements }, (_, i) => 2 * random.uniform(i) - 1)
  }
  const weightedSum = () =>
    noGrad(() =>
      scope(() => {
        let sum = 0
        for (const [index, output] of outputsOf().entries()) {
          const values = toArray(output) as Float64Array
          const weights = weightOf(output, index)
          for (let i = 0; i < values.length; i++) sum += (weights[i] as number) * (values[i] as number)
        }
        return sum
      }),
    )

  const gradients = analyticGradients(inputs, tensors, outputsOf, weightOf)
  let checked = 0
  let worst = 0
  for (const [index, tensor] of tensors.entries()) {
    const original = toArray(tensor) as Float64Array
    const moved = original.slice()
    const stride = Math.max(1, Math.ceil(original.length / elements))
    for (let i = 0; i < original.length; i += stride) {
      const at = (offset: number) => {
        moved[i] = (original[i] as number) + offset
        write(tensor, moved)
        return weightedSum()
      }
      const numeric = (at(step) - at(-step)) / (2 * step)
      moved[i] = original[i] as number
      write(tensor, original)
      const analytic = gradients[index]?.[i] ?? 0
      const deviation = Math.abs(analytic - numeric) / Math.max(1, Math.abs(analytic), Math.abs(numeric))
      if (!(deviation <= tolerance)) {
        const input = inputs[index]
        const name = input instanceof Parameter ? input.name : `inputs[${index}]`
        throw new TrilithonError(
          'INVARIANT_BROKEN',
          `The gradient of ${name}, element ${i}, is ${analytic}; differences give ${numeric}.`,
          {
            path: name,
            details: { element: i, analytic, numeric, deviation, tolerance },
          },
        )
      }
      worst = Math.max(worst, deviation)
      checked++
    }
  }
  return { checked, worst }
}

function analyticGradients(
  inputs: readonly (Tensor | Parameter)[],
  tensors: readonly Tensor[],
  outputsOf: () => readonly Tensor[],
  weightOf: (output: Tensor, index: number) => Float64Array,
): readonly (Float64Array | null)[] {
  for (const input of inputs) if (input instanceof Parameter) input.zeroGradient()
  return record((tape) => {
    for (const tensor of tensors) tape.watch(tensor)
    const seeds = outputsOf().map((output, index) => ({ output, gradient: fromArray('f64', output.shape, weightOf(output, index)) }))
    tape.backward(seeds)
    return inputs.map((input, index) => {
      const gradient = input instanceof Parameter ? input.gradient : tape.gradient(tensors[index] as Tensor)
      const array = gradient === null ? null : (toArray(gradient) as Float64Array)
      if (input instanceof Parameter) input.zeroGradient()
      return array
    })
  })
}
