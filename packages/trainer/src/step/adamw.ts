import { keep, type Parameter, toArray, write, zeros } from '@trilithon/tensor'
import { type Optimiser, type OptimiserState, trainable } from './optimiser.ts'

export interface AdamWOptions {
  readonly weight_decay: number
  readonly betas1: number
  readonly betas2: number
}

/** PyTorch's, which the configuration has no key for. */
const epsilon = 1e-8

/**
 * Adam with decoupled weight decay (Loshchilov, Hutter: "Decoupled Weight Decay Regularization"), as PyTorch computes it:
 *
 *     p -= lr·decay·p;  m += (1 - β1)(g - m);  v += (1 - β2)(g² - v);  p -= lr/(1 - β1^t) · m / (sqrt(v/(1 - β2^t)) + ε)
 *
 * Each element is computed in double precision and rounded once per result.
 */
export function createAdamW(parameters: Iterable<Parameter>, { weight_decay: decay, betas1, betas2 }: AdamWOptions): Optimiser {
  const slots = trainable(parameters).map((parameter) => ({
    parameter,
    mean: keep(zeros(parameter.value.dtype, parameter.shape)),
    square: keep(zeros(parameter.value.dtype, parameter.shape)),
  }))
  // A tensor like the others, so that a checkpoint holds it.
  const count = keep(zeros('f32', [1]))
  const states: OptimiserState[] = slots.flatMap(({ parameter: { name }, mean, square }) => [
    { name: `adamw.mean.${name}`, tensor: mean },
    { name: `adamw.square.${name}`, tensor: square },
  ])
  return {
    states: [...states, { name: 'adamw.steps', tensor: count }],
    step({ learningRate: rate, gradientScale: scale }) {
      const steps = Number(toArray(count)[0]) + 1
      const rateOfMean = rate / (1 - betas1 ** steps)
      const rootOfSquare = Math.sqrt(1 - betas2 ** steps)
      for (const { parameter, mean, square } of slots) {
        const gradient = parameter.gradient === null ? null : (toArray(parameter.gradient) as Float32Array)
        const p = toArray(parameter.value) as Float32Array
        const m = toArray(mean) as Float32Array
        const v = toArray(square) as Float32Array
        const kept = 1 - rate * decay
        for (let i = 0; i < p.length; i++) {
          const g = gradient === null ? 0 : (gradient[i] as number) * scale
          const nextMean = (m[i] as number) + (1 - betas1) * (g - (m[i] as number))
          const nextSquare = (v[i] as number) + (1 - betas2) * (g * g - (v[i] as number))
          m[i] = nextMean
          v[i] = nextSquare
          p[i] = (p[i] as number) * kept - (rateOfMean * nextMean) / (Math.sqrt(nextSquare) / rootOfSquare + epsilon)
        }
        write(parameter.value, p)
        write(mean, m)
        write(square, v)
      }
      write(count, [steps])
    },
    dispose() {
      for (const { mean, square } of slots) {
        mean.dispose()
        square.dispose()
      }
      count.dispose()
    },
  }
}
