/** Latent attention as MLA's absorbed form needs it: every head reads the same rows, all of them or chosen ones. */
import { mlaAttentionBackward, mlaAttentionForward, mlaAttentionPaged } from '@trilithon/native'
import { empty, type PackedSequences, type PagedSequences, recorder, type Tensor } from '@trilithon/tensor'
import type { KeyChoice, LatentKeys, LatentQueries } from './context-backend.ts'

/** Within packed documents: [T, H, R]. */
export function latentAttention(
  q: LatentQueries,
  keys: LatentKeys,
  choice: KeyChoice | null,
  { documentStarts, chunks }: PackedSequences,
  scale: number,
): Tensor {
  const tape = recorder(q.latent, q.rotary, keys.latent, keys.rotary)
  const out = empty(q.latent.dtype, q.latent.shape)
  const lse = tape === null ? null : empty(q.latent.dtype, q.latent.shape.slice(0, 2))
  const rows = [documentStarts, chunks?.starts, chunks?.documents, chunks?.positions, choice?.indices, choice?.counts]
  const argumentsOf = (tensorAt: (index: number) => Tensor | null | undefined) => ({
    documentStarts: (tensorAt(0) as Tensor).handle,
    chunkStarts: tensorAt(1)?.handle,
    chunkDocuments: tensorAt(2)?.handle,
    chunkPositions: tensorAt(3)?.handle,
    indices: tensorAt(4)?.handle,
    counts: tensorAt(5)?.handle,
    scale,
  })
  mlaAttentionForward({
    q: q.latent.handle,
    qRope: q.rotary.handle,
    latent: keys.latent.handle,
    rope: keys.rotary.handle,
    ...argumentsOf((index) => rows[index]),
    out: out.handle,
    lse: lse?.handle,
  })
  const inputs = [q.latent, q.rotary, keys.latent, keys.rotary, ...rows]
  tape?.add('latent-attention', inputs, [out], [...inputs, out, lse], (step) => {
    const [heldQ, heldQRotary, latent, rotary] = [step.held(0), step.held(1), step.held(2), step.held(3)]
    mlaAttentionBackward({
      dOut: step.gradient(0).handle,
      q: heldQ.handle,
      qRope: heldQRotary.handle,
      latent: latent.handle,
      rope: rotary.handle,
      ...argumentsOf((index) => step.heldOrNull(4 + index)),
      out: step.held(10).handle,
      lse: step.held(11).handle,
      dQ: step.fresh(0, heldQ).handle,
      dQRope: step.fresh(1, heldQRotary).handle,
      dLatent: step.fresh(2, latent).handle,
      dRope: step.fresh(3, rotary).handle,
    })
  })
  return out
}

/** The same for the last rows of sequences whose keys lie in pages. */
export function pagedLatentAttention(
  q: LatentQueries,
  latentPages: Tensor,
  rotaryPages: Tensor,
  choice: KeyChoice | null,
  { queryStarts, contextLengths, blockTable }: PagedSequences,
  scale: number,
): Tensor {
  const out = empty(q.latent.dtype, q.latent.shape)
  mlaAttentionPaged({
    q: q.latent.handle,
    qRope: q.rotary.handle,
    latentPages: latentPages.handle,
    ropePages: rotaryPages.handle,
    queryStarts: queryStarts.handle,
    contextLengths: contextLengths.handle,
    blockTable: blockTable.handle,
    indices: choice?.indices.handle,
    counts: choice?.counts.handle,
    out: out.handle,
    scale,
  })
  return out
}
