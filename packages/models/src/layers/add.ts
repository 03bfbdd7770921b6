import { emptyLike, recorder, type Tensor, toArray, write } from '@trilithon/tensor'

/** a + b of equal shapes. */
export function add(a: Tensor, b: Tensor): Tensor {
  const y = emptyLike(a)
  const sum = toArray(a) as Float64Array
  const other = toArray(b) as Float64Array
  for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] as number) + (other[i] as number)
  write(y, sum)
  recorder(a, b)?.add('add', [a, b], [y], [], (step) => {
    step.pass(0, step.gradient(0))
    step.pass(1, step.gradient(0))
  })
  return y
}
