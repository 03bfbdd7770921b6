/** Shapes: T tokens, E experts, k experts of a token. */
import { elementary, fromArray, scope, type Tensor, toArray } from '@trilithon/tensor'

export type RouterScores = 'softmax' | 'sigmoid'

/**
 * How sure a router is: the scores of the experts that a token goes to over the scores of all, summed over tokens. Scores are those before a correction
 * bias, normalising and scaling. With equal scores it is k / E for each token, and 1 where no other expert has any.
 *
 * logits: [T, E], ids: [T, k].
 */
export function chosenShare(logits: Tensor, ids: Tensor, scores: RouterScores): number {
  const values = scoresOf(logits, scores)
  const chosen = toArray(ids) as Uint8Array
  const [tokens, experts, topK] = [logits.dim(0), logits.dim(1), ids.dim(1)]
  let sum = 0
  for (let token = 0; token < tokens; token++) {
    const first = token * experts
    let all = 0
    for (let expert = first; expert < first + experts; expert++) all += values[expert] as number
    let own = 0
    for (let slot = token * topK; slot < (token + 1) * topK; slot++) own += values[first + (chosen[slot] as number)] as number
    // Sigmoids of logits far below 0 may all be 0.
    if (all > 0) sum += own / all
  }
  return sum
}

/** Those of softmax without their common divisor, which a share does not have. */
function scoresOf(logits: Tensor, scores: RouterScores): Float32Array {
  const values = toArray(logits) as Float32Array
  const experts = logits.dim(1)
  for (let first = 0; scores === 'softmax' && first < values.length; first += experts) {
    let largest = Number.NEGATIVE_INFINITY
    for (let index = first; index < first + experts; index++) largest = Math.max(largest, values[index] as number)
    for (let index = first; index < first + experts; index++) values[index] = (values[index] as number) - largest
  }
  return scope(
    () => toArray(elementary(scores === 'softmax' ? 'exp' : 'sigmoid', fromArray(logits.dtype, logits.shape, values))) as Float32Array,
  )
}
