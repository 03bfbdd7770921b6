import { fromArray, linear, noGrad, scope } from '@trilithon/tensor'

/** Rows, columns and depth of a product that is large enough to reach the kernels' best and takes half a millisecond. */
const size = 384
const shortestMs = 12

/**
 * Operations per second of the fastest of several matrix products, by the kernels, threads and numerics profile that train. It is what this process
 * can reach, not what the processor's maker says; other work on the machine makes it smaller. Takes some 12 ms.
 */
export function measurePeak(): number {
  return noGrad(() =>
    scope(() => {
      // Values do not matter, but denormals would cost time.
      const values = new Float32Array(size * size).fill(1)
      const [x, weight] = [fromArray('f32', [size, size], values), fromArray('f32', [size, size], values)]
      let fastest = Number.POSITIVE_INFINITY
      const begin = performance.now()
      for (let round = 0; round < 2 || performance.now() - begin < shortestMs; round++) {
        const start = performance.now()
        scope(() => void linear(x, weight))
        fastest = Math.min(fastest, performance.now() - start)
      }
      return (2 * size ** 3) / (fastest / 1000)
    }),
  )
}
