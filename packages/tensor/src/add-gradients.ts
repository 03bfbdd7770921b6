import { pointwiseAdd } from '@trilithon/native'
import { emptyLike, type Tensor } from './tensor.ts'

/** Adds `part` to `total` in place; both may have gaps. */
export function addInto(total: Tensor, part: Tensor): void {
  pointwiseAdd({ a: total.handle, b: part.handle, y: total.handle })
}

/** a + b in memory of its own. */
export function addTensors(a: Tensor, b: Tensor): Tensor {
  const sum = emptyLike(a)
  pointwiseAdd({ a: a.handle, b: b.handle, y: sum.handle })
  return sum
}
