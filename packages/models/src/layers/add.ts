import { pointwiseAdd } from '@trilithon/native'
import { emptyLike, recorder, type Tensor } from '@trilithon/tensor'

/** a + b of equal shapes. */
export function add(a: Tensor, b: Tensor): Tensor {
  const y = emptyLike(a)
  pointwiseAdd({ a: a.handle, b: b.handle, y: y.handle })
  recorder(a, b)?.add('add', [a, b], [y], [], (step) => {
    step.pass(0, step.gradient(0))
    step.pass(1, step.gradient(0))
  })
  return y
}
