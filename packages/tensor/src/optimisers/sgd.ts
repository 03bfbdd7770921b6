import { optimizersSgd, optimizersSignSgd } from '@trilithon/native'
import { scope } from '../scope.ts'
import { gradientOf, type Optimiser, type Trainable, trainablesOf, zeroStates } from './optimiser.ts'

export interface SgdOptions {
  readonly weightDecay: number
  /** 0: none, and no state. */
  readonly momentum: number
  /** Looks ahead by the momentum. */
  readonly isNesterov: boolean
}

/** Gradient descent with momentum. States: `sgd.velocity.*`. */
export function createSgd(parameters: Iterable<Trainable>, { weightDecay, momentum, isNesterov }: SgdOptions): Optimiser {
  const trainables = trainablesOf(parameters)
  const velocities = momentum === 0 ? [] : zeroStates('sgd.velocity', trainables)
  return {
    states: velocities,
    step: ({ learningRate, gradientScale = 1 }) =>
      scope(() => {
        // Every gradient is looked at before anything changes.
        const gradients = trainables.map((trainable) => ({ trainable, gradient: gradientOf(trainable) }))
        for (const [index, { trainable, gradient }] of gradients.entries()) {
          const velocity = velocities[index]?.tensor
          optimizersSgd({
            param: trainable.value.handle,
            gradient: gradient.handle,
            velocity: velocity?.handle,
            learningRate,
            momentum,
            weightDecay,
            gradientScale,
            nesterov: isNesterov,
          })
          trainable.value.writes++
          if (velocity !== undefined) velocity.writes++
        }
      }),
    dispose() {
      for (const { tensor } of velocities) tensor.dispose()
    },
  }
}

/** Steps by the sign of the gradient alone, which no scale changes. It has no state. */
export function createSignSgd(parameters: Iterable<Trainable>, { weightDecay }: Pick<SgdOptions, 'weightDecay'>): Optimiser {
  const trainables = trainablesOf(parameters)
  return {
    states: [],
    step: ({ learningRate }) =>
      scope(() => {
        const gradients = trainables.map((trainable) => ({ trainable, gradient: gradientOf(trainable) }))
        for (const { trainable, gradient } of gradients) {
          optimizersSignSgd({ param: trainable.value.handle, gradient: gradient.handle, learningRate, weightDecay })
          trainable.value.writes++
        }
      }),
    dispose: () => undefined,
  }
}
