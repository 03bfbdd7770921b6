/** Multi-head latent attention in its absorbed form: all heads read one latent row and one rope row per token. */
import { mlaAttentionBackward, mlaAttentionForward, mlaAttentionPaged } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { detach, recorder, refuseRecording } from '../tape.ts'
import { empty, emptyLike, type Tensor } from '../tensor.ts'
import { heldSequences, type PackedSequences, type PagedSequences, packedArguments, pagedArguments, tensorsOf } from './sequences.ts'

/** Keys that were chosen for each query: positions in its document, ascending, none beyond its own. */
export interface ChosenKeys {
  /** i32 [queries, topK], of which a row's first `counts` entries are read. */
  readonly indices: Tensor
  /** i32 [queries]. */
  readonly counts: Tensor
}

export interface LatentQueries {
  /** Absorbed queries, [queries, heads, latent_width]. */
  readonly latent: Tensor
  /** [queries, heads, rope_width]. */
  readonly rotary: Tensor
}

export interface LatentKeys {
  /** [keys, latent_width], or pages [pages, block_size, latent_width]. */
  readonly latent: Tensor
  /** [keys, rope_width], or pages of them. */
  readonly rotary: Tensor
}

export interface LatentAttentionResult {
  /** [queries, heads, latent_width]: still latent. */
  readonly out: Tensor
  /** Logarithm of the sum of each row's weights before they were normalised, [queries, heads]: what `indexerKl` needs. No gradient flows through it. */
  readonly lse: Tensor
}

/** Within packed documents, over all keys or the chosen ones. Gives [queries, heads, latent_width]: still latent. */
export function latentAttention(
  q: LatentQueries,
  keys: LatentKeys,
  sequences: PackedSequences,
  chosen: ChosenKeys | null,
  scale: number,
): Tensor {
  return atomic(() => attend(q, keys, sequences, chosen, scale, recorder(q.latent, q.rotary, keys.latent, keys.rotary) !== null).out)
}

/** The same, with its sums. */
export function latentAttentionWithLse(
  q: LatentQueries,
  keys: LatentKeys,
  sequences: PackedSequences,
  chosen: ChosenKeys | null,
  scale: number,
): LatentAttentionResult {
  return atomic(() => {
    const { out, lse } = attend(q, keys, sequences, chosen, scale, true)
    return { out, lse: detach(lse as Tensor) }
  })
}

function attend(
  q: LatentQueries,
  keys: LatentKeys,
  sequences: PackedSequences,
  chosen: ChosenKeys | null,
  scale: number,
  needsLse: boolean,
): { readonly out: Tensor; readonly lse: Tensor | null } {
  const inputs = [q.latent, q.rotary, keys.latent, keys.rotary]
  const out = emptyLike(q.latent)
  const lse = needsLse ? empty(q.latent.dtype, q.latent.shape.slice(0, 2)) : null
  mlaAttentionForward({
    q: q.latent.handle,
    qRope: q.rotary.handle,
    latent: keys.latent.handle,
    rope: keys.rotary.handle,
    ...packedArguments(sequences),
    indices: chosen?.indices.handle,
    counts: chosen?.counts.handle,
    out: out.handle,
    lse: lse?.handle,
    scale,
  })
  const fixed = [chosen?.indices ?? null, chosen?.counts ?? null, ...tensorsOf(sequences)]
  recorder(...inputs)?.add('latent-attention', [...inputs, ...fixed], [out], [...inputs, out, lse, ...fixed], (step) =>
    gradient(step, scale),
  )
  return { out, lse }
}

function gradient(step: BackwardStep, scale: number): void {
  const [q, qRope, latent, rope] = [step.held(0), step.held(1), step.held(2), step.held(3)]
  mlaAttentionBackward({
    dOut: step.gradient(0).handle,
    q: q.handle,
    qRope: qRope.handle,
    latent: latent.handle,
    rope: rope.handle,
    out: step.held(4).handle,
    lse: step.held(5).handle,
    indices: step.heldOrNull(6)?.handle,
    counts: step.heldOrNull(7)?.handle,
    ...packedArguments(heldSequences((index) => step.heldOrNull(index), 8)),
    dQ: step.fresh(0, q).handle,
    dQRope: step.fresh(1, qRope).handle,
    dLatent: step.fresh(2, latent).handle,
    dRope: step.fresh(3, rope).handle,
    scale,
  })
}

/** The same for the last queries of sequences whose keys lie in pages, bit for bit. For the engine: not differentiable. */
export function pagedLatentAttention(
  q: LatentQueries,
  pages: LatentKeys,
  sequences: PagedSequences,
  chosen: ChosenKeys | null,
  scale: number,
): Tensor {
  refuseRecording('pagedLatentAttention', 'q', q.latent)
  return atomic(() => {
    const out = emptyLike(q.latent)
    mlaAttentionPaged({
      q: q.latent.handle,
      qRope: q.rotary.handle,
      latentPages: pages.latent.handle,
      ropePages: pages.rotary.handle,
      ...pagedArguments(sequences),
      indices: chosen?.indices.handle,
      counts: chosen?.counts.handle,
      out: out.handle,
      scale,
    })
    return out
  })
}
