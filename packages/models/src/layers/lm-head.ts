import { lmHeadBackward, lmHeadForward } from '@trilithon/native'
import { empty, recorder, type Tensor } from '@trilithon/tensor'

export interface Scores {
  /** Log-probability of each row's target: [rows]. */
  readonly logprobs: Tensor
  /** Entropy of each row's distribution, where it was asked for. No gradient flows through it. */
  readonly entropy: Tensor | null
}

/**
 * Log-probabilities of `targets` under softmax(hidden · weightᵀ / temperature), in chunks of the vocabulary. hidden: [rows, width], weight: [vocabulary,
 * width], targets: i32 [rows], temperature: [rows].
 */
export function scoreTokens(hidden: Tensor, weight: Tensor, targets: Tensor, temperature: Tensor, withEntropy: boolean): Scores {
  const rows = hidden.dim(0)
  const tape = recorder(hidden, weight)
  const logprobs = empty(hidden.dtype, [rows])
  const entropy = withEntropy ? empty(hidden.dtype, [rows]) : null
  const stats = tape === null ? null : empty(hidden.dtype, [rows, 2])
  lmHeadForward({
    hidden: hidden.handle,
    weight: weight.handle,
    targets: targets.handle,
    temperature: temperature.handle,
    logprob: logprobs.handle,
    entropy: entropy?.handle,
    stats: stats?.handle,
    vocabulary: 0,
  })
  tape?.add('lm-head', [hidden, weight, targets, temperature], [logprobs], [hidden, weight, targets, temperature, stats], (step) => {
    const [heldHidden, heldWeight] = [step.held(0), step.held(1)]
    const sum = step.needs(1) ? step.into([1], [heldWeight]) : null
    lmHeadBackward({
      dLogprob: step.gradient(0).handle,
      hidden: heldHidden.handle,
      weight: heldWeight.handle,
      targets: step.held(2).handle,
      temperature: step.held(3).handle,
      stats: step.held(4).handle,
      dHidden: step.freshOrNull(0)?.handle,
      dWeight: sum?.tensors[0]?.handle,
      accumulate: sum?.accumulate ?? false,
    })
  })
  return { logprobs, entropy }
}
