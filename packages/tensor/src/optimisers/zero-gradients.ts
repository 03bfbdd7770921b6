import { readTensor } from '@trilithon/native'
import { scope } from '../scope.ts'
import { type Tensor, toArray, viewOf } from '../tensor.ts'

export interface ZeroGradients {
  /** Elements whose gradient is 0, of either sign. Those of a parameter that got none count. */
  readonly zeros: number
  /** All elements of parameters that are trained. */
  readonly elements: number
}

interface Graded {
  readonly isTrainable: boolean
  readonly elements: number
  readonly gradient: Tensor | null
}

/** Elements that come to the host at a time: few enough to stay in the cache. */
const chunk = 65536

/** How much of what is trained got no gradient: experts that no token went to, for one. */
export function countZeroGradients(parameters: Iterable<Graded>): ZeroGradients {
  const values = new Float32Array(chunk)
  let zeros = 0
  let elements = 0
  for (const { isTrainable, elements: count, gradient } of parameters) {
    if (!isTrainable) continue
    elements += count
    zeros += gradient === null ? count : zerosOf(gradient, values)
  }
  return { zeros, elements }
}

function zerosOf(gradient: Tensor, values: Float32Array): number {
  if (gradient.dtype !== 'f32') return (toArray(gradient) as Float64Array).reduce((sum, value) => sum + (value === 0 ? 1 : 0), 0)
  const bits = new Int32Array(values.buffer)
  let zeros = 0
  for (let first = 0; first < gradient.elements; first += chunk) {
    const count = Math.min(chunk, gradient.elements - first)
    const part = values.subarray(0, count)
    if (count === gradient.elements) readTensor(gradient.handle, part)
    else scope(() => readTensor(viewOf(gradient, [count], [1], first).handle, part))
    zeros += count - nonZeros(bits, count)
  }
  return zeros
}

/** The sign shifted out, the top bit of b | -b is 0 for 0 alone. Without branches, which would be guessed wrong, and in sums that do not wait for each other. */
function nonZeros(bits: Int32Array, count: number): number {
  let even = 0
  let odd = 0
  let index = 0
  for (; index + 2 <= count; index += 2) {
    const a = (bits[index] as number) << 1
    const b = (bits[index + 1] as number) << 1
    even += (a | -a) >>> 31
    odd += (b | -b) >>> 31
  }
  const last = index < count ? (bits[index] as number) << 1 : 0
  return even + odd + ((last | -last) >>> 31)
}
