import { indexerKlBackward, indexerKlForward } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, type Tensor } from '../tensor.ts'
import type { IndexRows } from './dsa-indexer.ts'
import type { ChosenKeys, LatentKeys, LatentQueries } from './mla-attention.ts'
import { heldSequences, type PackedSequences, packedArguments, tensorsOf } from './sequences.ts'

/** The attention that an indexer learns to foresee: a constant, whatever its tensors are recorded with. */
export interface AttentionTarget {
  readonly q: LatentQueries
  readonly keys: LatentKeys
  /** Of `latentAttentionWithLse` over the same keys. */
  readonly lse: Tensor
  readonly scale: number
}

/**
 * Divergence of the softmax of index scores from the attention of all heads, per query, over the chosen keys or all: [queries]. Gradients reach the
 * indexer alone.
 */
export function indexerKl(
  index: IndexRows,
  target: AttentionTarget,
  sequences: PackedSequences,
  chosen: ChosenKeys | null,
  indexScale: number,
): Tensor {
  return atomic(() => {
    const learned = [index.q, index.k, index.weights]
    const { q, keys, lse, scale } = target
    const rows = [index.q.dim(0)]
    const kl = empty(index.q.dtype, rows)
    const indexLse = empty(index.q.dtype, rows)
    const targetSum = empty(index.q.dtype, rows)
    const constants = [q.latent, q.rotary, keys.latent, keys.rotary, lse]
    const fixed = [...constants, chosen?.indices ?? null, chosen?.counts ?? null, ...tensorsOf(sequences)]
    indexerKlForward({
      indexQ: index.q.handle,
      indexK: index.k.handle,
      indexWeights: index.weights.handle,
      q: q.latent.handle,
      qRope: q.rotary.handle,
      latent: keys.latent.handle,
      rope: keys.rotary.handle,
      lse: lse.handle,
      ...packedArguments(sequences),
      indices: chosen?.indices.handle,
      counts: chosen?.counts.handle,
      indexScale,
      scale,
      kl: kl.handle,
      indexLse: indexLse.handle,
      targetSum: targetSum.handle,
    })
    const tape = recorder(...learned)
    if (tape === null) for (const unused of [indexLse, targetSum]) unused.dispose()
    else
      tape.add('indexer-kl', [...learned, ...fixed], [kl], [...learned, indexLse, targetSum, ...fixed], (step) =>
        gradient(step, indexScale, scale),
      )
    return kl
  })
}

function gradient(step: BackwardStep, indexScale: number, scale: number): void {
  const [indexQ, indexK, indexWeights] = [step.held(0), step.held(1), step.held(2)]
  indexerKlBackward({
    dKl: step.gradient(0).handle,
    indexQ: indexQ.handle,
    indexK: indexK.handle,
    indexWeights: indexWeights.handle,
    indexLse: step.held(3).handle,
    targetSum: step.held(4).handle,
    q: step.held(5).handle,
    qRope: step.held(6).handle,
    latent: step.held(7).handle,
    rope: step.held(8).handle,
    lse: step.held(9).handle,
    indices: step.heldOrNull(10)?.handle,
    counts: step.heldOrNull(11)?.handle,
    ...packedArguments(heldSequences((index) => step.heldOrNull(index), 12)),
    indexScale,
    scale,
    dIndexQ: step.fresh(0, indexQ).handle,
    dIndexK: step.fresh(1, indexK).handle,
    dIndexWeights: step.fresh(2, indexWeights).handle,
  })
}
