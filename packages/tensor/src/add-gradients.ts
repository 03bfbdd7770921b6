import { emptyLike, type Tensor, toArray, write } from './tensor.ts'
/** total += part */
export function addInto(total: Tensor, part: Tensor): void {
  const a = toArray(total) as Float64Array
  const b = toArray(part) as Float64Array
  for (let i = 0; i < a.length; i++) a[i] = (a[i] as number) + (b[i] as number)
  write(total, a)
}
export function addTensors(a: Tensor, b: Tensor): Tensor {
  const sum = emptyLike(a)
  write(sum, toArray(a))
  addInto(sum, b)
  return sum
}
