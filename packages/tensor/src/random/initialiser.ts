import { CounterRandom } from './counter-random.ts'
import { normalQuantile } from './normal-quantile.ts'

/** How a parameter starts. Element `index` of the whole parameter, counted in row-major order, is the same in whichever slice it is asked for. */
export interface Initialiser {
  readonly kind: string
  /** Writes elements `first`, `first + 1`, … of the parameter `name`. */
  fill(target: Float32Array | Float64Array, seed: number, name: string, first: number): void
}

function perElement(kind: string, elementOf: (uniform: number) => number): Initialiser {
  return {
    kind,
    fill(target, seed, name, first) {
      const random = new CounterRandom(seed, name)
      for (let i = 0; i < target.length; i++) target[i] = elementOf(random.uniform(first + i))
    },
  }
}

/** Normally distributed. */
export function normal(standardDeviation: number, mean = 0): Initialiser {
  return perElement('normal', (uniform) => mean + standardDeviation * normalQuantile(uniform))
}

/** Normally distributed, restricted to `bound` standard deviations on both sides of the mean. */
export function truncatedNormal(standardDeviation: number, bound = 2, mean = 0): Initialiser {
  const outside = lowerTail(bound)
  return perElement('truncated-normal', (uniform) => mean + standardDeviation * normalQuantile(outside + uniform * (1 - 2 * outside)))
}

/** Evenly distributed in the open interval from `low` to `high`. */
export function uniform(low: number, high: number): Initialiser {
  return perElement('uniform', (value) => low + (high - low) * value)
}

export function constant(value: number): Initialiser {
  return { kind: 'constant', fill: (target) => void target.fill(value) }
}

/** Probability of a normal number below `-bound`, by bisection of the quantile. */
function lowerTail(bound: number): number {
  let low = 0
  let high = 0.5
  for (let i = 0; i < 100; i++) {
    const middle = (low + high) / 2
    if (normalQuantile(middle) < -bound) low = middle
    else high = middle
  }
  return high
}
