import type { Model } from '@trilithon/models'
import { readTensor } from '@trilithon/native'
import { type Optimiser, scope, type Tensor, viewOf, write } from '@trilithon/tensor'
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
  const find = (name: string): Tensor => {
    const tensor = byName.get(name)
    if (tensor === undefined) throw new Error(`the training state has no tensor ${name}`)
    return tensor
  }
  return {
    tensors: [...byName].map(([name, { shape }]) => ({ name, shape })),
    give: (name, first, into) => readElements(find(name), first, into),
    take(name, first, values) {
      const tensor = find(name)
      scope(() => write(viewOf(tensor, [values.length], [1], first), values))
      // The view counted the write; layouts of the whole weight are stale too.
      tensor.writes++
    },
  }
}

/** Fills `into` with the elements of a contiguous f32 tensor from `first` on. */
export function readElements(tensor: Tensor, first: number, into: Float32Array): void {
  scope(() => readTensor(viewOf(tensor, [into.length], [1], first).handle, into))
}
