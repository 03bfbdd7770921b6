import { optimizersAdamw } from '@trilithon/native'
import { scope } from '../scope.ts'
import { gradientOf, type Optimiser, StepCount, type Trainable, trainablesOf, zeroStates } from './optimiser.ts'

export interface AdamWOptions {
  readonly weightDecay: number
  readonly beta1: number
  readonly beta2: number
  /** 1e-8 unless said otherwise. */
  readonly epsilon?: number
}

/** Adam with decoupled weight decay. States: `adamw.mean.*`, `adamw.square.*`, `adamw.steps`. */
export function createAdamW(parameters: Iterable<Trainable>, { weightDecay, beta1, beta2, epsilon = 1e-8 }: AdamWOptions): Optimiser {
  const trainables = trainablesOf(parameters)
  const means = zeroStates('adamw.mean', trainables)
  const squares = zeroStates('adamw.square', trainables)
  const steps = new StepCount('adamw.steps')
  const states = [...means, ...squares, steps]
  return {
    states,
    step: ({ learningRate, gradientScale = 1 }) =>
      scope(() => {
        // Every gradient is looked at before anything changes.
        const gradients = trainables.map(gradientOf)
        const step = steps.next()
        for (const [index, trainable] of trainables.entries()) {
          const [gradient, mean, square] = [gradients[index], means[index]?.tensor, squares[index]?.tensor]
          if (gradient === undefined || mean === undefined || square === undefined) continue
          optimizersAdamw({
            param: trainable.value.handle,
            gradient: gradient.handle,
            firstMoment: mean.handle,
            secondMoment: square.handle,
            learningRate,
            beta1,
            beta2,
            epsilon,
            weightDecay,
            gradientScale,
            step,
          })
          for (const tensor of [trainable.value, mean, square]) tensor.writes++
        }
      }),
    dispose() {
      for (const { tensor } of states) tensor.dispose()
    },
  }
}
