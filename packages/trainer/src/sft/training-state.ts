import type { Model } from '@trilithon/models'
import { type Optimiser, scope, type Tensor, toArray, viewOf, write } from '@trilithon/tensor'
import type { StateTensor } from '../checkpoint/training-checkpoint.ts'

/** The tensors of a training state by the name that checkpoints have for them: weights, buffers, states of the optimiser. */
export interface TrainingState {
  readonly tensors: readonly StateTensor[]
  /** Fills `into` with the elements of a tensor from `first` on. */
  give(name: string, first: number, into: Float32Array): void
  take(name: string, first: number, values: Float32Array): void
}

/** Names of the optimiser's states in checkpoints begin with it. */
export const optimiserPrefix = 'optimizer.'

export function trainingState(model: Model, optimiser: Optimiser): TrainingState {
  const byName = new Map<string, Tensor>()
  for (const { name, value } of model.parameters()) byName.set(`model.${name}`, value)
  for (const { name, tensor } of optimiser.states) byName.set(`${optimiserPrefix}${name}`, tensor)
  const part = (name: string, first: number, length: number): Tensor => {
    const tensor = byName.get(name)
    if (tensor === undefined) throw new Error(`the training state has no tensor ${name}`)
    return viewOf(tensor, [length], [1], first)
  }
  return {
    tensors: [...byName].map(([name, { shape }]) => ({ name, shape })),
    give: (name, first, into) => scope(() => into.set(toArray(part(name, first, into.length)) as Float32Array)),
    take(name, first, values) {
      scope(() => write(part(name, first, values.length), values))
      // The view counted the write; layouts of the whole weight are stale too.
      const tensor = byName.get(name)
      if (tensor !== undefined) tensor.writes++
    },
  }
}
