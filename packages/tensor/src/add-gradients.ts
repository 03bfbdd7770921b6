import { emptyLike, type Tensor, toArray, viewOf, write } from './tensor.ts'

/** total += part */
export function addInto(total: Tensor, part: Tensor): void {
  if (!total.isContiguous || !part.isContiguous) {
    const shape = total.shape.slice(1)
    for (let row = 0; row < (total.shape[0] as number); row++) {
      const a = viewOf(total, shape, total.strides.slice(1), row * (total.strides[0] as number))
      const b = viewOf(part, shape, part.strides.slice(1), row * (part.strides[0] as number))
      addInto(a, b)
    }
    return
  }
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
