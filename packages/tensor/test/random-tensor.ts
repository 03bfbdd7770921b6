import { fromArray, normal, type Tensor } from '../src/index.ts'

/** Normally distributed numbers that follow from seed and name. */
export function randomTensor(shape: readonly number[], name: string, seed: number): Tensor {
  const values = new Float32Array(shape.reduce((count, size) => count * size, 1))
  normal(1).fill(values, seed, name, 0)
  return fromArray('f32', shape, values)
}
