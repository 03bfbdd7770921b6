import { invariant } from '@trilithon/core'
import { checkpoint, scope, type Tensor } from '@trilithon/tensor'
import type { DecoderLayer, LayerCall, LayerResult } from '../layers/decoder-layer.ts'

/** Runs a layer in a scope of its own; with `recompute` the tape keeps what goes in, and the backward runs the layer again. */
export function runLayer(layer: DecoderLayer, x: Tensor, call: LayerCall, recompute: boolean): LayerResult {
  if (!recompute) return scope(() => layer.run(x, call))
  // A checkpoint takes and gives lists of tensors, and keeps those that it is given. Which of them there are is the same in both runs.
  let first: LayerResult | null = null
  const outputs = checkpoint(
    (...inputs) => {
      const take = takeFrom(inputs)
      const result = layer.run(take.one(x), {
        ...call,
        rotary: { cosines: take.one(call.rotary.cosines), sines: take.one(call.rotary.sines) },
        givenRoutes: take.orNull(call.givenRoutes),
        givenChoice: take.choice(call.givenChoice),
      })
      first = result
      return listOf(result.x, result.choice?.indices, result.choice?.counts, result.indexLoss, result.routes, result.expertStarts)
    },
    ...listOf(x, call.rotary.cosines, call.rotary.sines, call.givenRoutes, call.givenChoice?.indices, call.givenChoice?.counts),
  )
  const shape = first as LayerResult | null
  invariant(shape !== null, 'a checkpoint runs its body')
  const take = takeFrom(outputs)
  return {
    x: take.one(shape.x),
    choice: take.choice(shape.choice),
    indexLoss: take.orNull(shape.indexLoss),
    routes: take.orNull(shape.routes),
    expertStarts: take.orNull(shape.expertStarts),
    // Of the forward: what the backward computes again is not counted again.
    chosenShare: shape.chosenShare,
  }
}

function listOf(...tensors: readonly (Tensor | null | undefined)[]): Tensor[] {
  return tensors.filter((tensor) => tensor !== null && tensor !== undefined)
}

/** Takes tensors from a list in the order in which they were put there; the arguments say which were. */
function takeFrom(list: readonly Tensor[]) {
  let index = 0
  const one = (_had: Tensor): Tensor => {
    const tensor = list[index++]
    invariant(tensor !== undefined, 'a checkpoint gives what it was given')
    return tensor
  }
  return {
    one,
    orNull: (had: Tensor | null): Tensor | null => (had === null ? null : one(had)),
    choice: (had: LayerCall['givenChoice']): LayerCall['givenChoice'] =>
      had === null ? null : { indices: one(had.indices), counts: one(had.counts) },
  }
}
