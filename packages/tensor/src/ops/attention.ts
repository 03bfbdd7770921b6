/** Causal attention with grouped heads: query head h reads key head h / (heads / kv_heads). */
import { attentionBackward, attentionForward, attentionPaged } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { atomic } from '../scope.ts'
import { recorder, refuseRecording } from '../tape.ts'
import { empty, type Tensor } from '../tensor.ts'
import { heldSequences, type PackedSequences, type PagedSequences, packedArguments, pagedArguments, tensorsOf } from './sequences.ts'

/**
 * Within packed documents. q: [queries, heads, width], k: [keys, kv_heads, width], v: [keys, kv_heads, value_width]; rows and heads may have gaps.
 * Gives [queries, heads, value_width].
 */
export function attention(q: Tensor, k: Tensor, v: Tensor, sequences: PackedSequences, scale: number): Tensor {
  return atomic(() => {
    const tape = recorder(q, k, v)
    const out = empty(q.dtype, [q.dim(0), q.dim(1), v.dim(2)])
    const lse = tape === null ? null : empty(q.dtype, [q.dim(0), q.dim(1)])
    attentionForward({
      q: q.handle,
      k: k.handle,
      v: v.handle,
      ...packedArguments(sequences),
      out: out.handle,
      lse: lse?.handle,
      scale,
    })
    const rows = tensorsOf(sequences)
    tape?.add('attention', [q, k, v, ...rows], [out], [q, k, v, out, lse, ...rows], (step) => gradient(step, scale))
    return out
  })
}

function gradient(step: BackwardStep, scale: number): void {
  const [q, k, v] = [step.held(0), step.held(1), step.held(2)]
  attentionBackward({
    dOut: step.gradient(0).handle,
    q: q.handle,
    k: k.handle,
    v: v.handle,
    out: step.held(3).handle,
    lse: step.held(4).handle,
    ...packedArguments(heldSequences((index) => step.heldOrNull(index), 5)),
    dQ: step.fresh(0, q).handle,
    dK: step.fresh(1, k).handle,
    dV: step.fresh(2, v).handle,
    scale,
  })
}

/**
 * The same for the last queries of sequences whose keys lie in pages, bit for bit. kPages: [pages, block_size, kv_heads, width]. For the engine: not
 * differentiable.
 */
export function pagedAttention(q: Tensor, kPages: Tensor, vPages: Tensor, sequences: PagedSequences, scale: number): Tensor {
  refuseRecording('pagedAttention', 'q', q)
  return atomic(() => {
    const out = empty(q.dtype, [q.dim(0), q.dim(1), vPages.dim(3)])
    attentionPaged({
      q: q.handle,
      kPages: kPages.handle,
      vPages: vPages.handle,
      ...pagedArguments(sequences),
      out: out.handle,
      scale,
    })
    return out
  })
}
