import { type Parameter, toArray } from '@trilithon/tensor'

export interface GradientNorm {
  /** Of all gradients as one vector, before they are scaled; not finite where one of them is not. */
  readonly norm: number
  /** Share of gradient elements that are exactly 0. */
  readonly zeroRatio: number
}

/** Sums squares in double precision, parameter by parameter in the order of the model. */
export function gradientNorm(parameters: Iterable<Parameter>): GradientNorm {
  let sum = 0
  let zeros = 0
  let elements = 0
  for (const { gradient } of parameters) {
    if (gradient === null) continue
    const values = toArray(gradient) as Float32Array
    let own = 0
    for (let i = 0; i < values.length; i++) {
      const value = values[i] as number
      own += value * value
      if (value === 0) zeros++
    }
    sum += own
    elements += values.length
  }
  return { norm: Math.sqrt(sum), zeroRatio: elements === 0 ? 0 : zeros / elements }
}

/** What gradients are multiplied by so that their norm is at most `maxNorm`; as PyTorch, with a little distance to a division by zero. */
export function clipScale(norm: number, maxNorm: number | null): number {
  return maxNorm === null ? 1 : Math.min(1, maxNorm / (norm + 1e-6))
}
