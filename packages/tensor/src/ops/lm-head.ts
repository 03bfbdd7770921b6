import { lmHeadBackward, lmHeadForward } from '@trilithon/native'
import type { BackwardStep } from '../backward-step.ts'
import { refuse } from '../refuse.ts'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, type Tensor } from '../tensor.ts'
import { type PackedWeight, weightArguments } from './packed-weight.ts'

export interface LmHeadOptions {
  readonly packed?: PackedWeight | null
  /** Also the entropy of each row's distribution. No gradient flows through it: one that reaches it is refused. */
  readonly hasEntropy?: boolean
}

export interface TokenScores {
  /** [tokens]. */
  readonly logprobs: Tensor
  /** [tokens], where it was asked for. */
  readonly entropy: Tensor | null
}

/**
 * Log-probability of each row's target under softmax(hidden · weightᵀ / temperature), never holding all logits. hidden: [tokens, width], weight:
 * [vocabulary, width], targets: i32 [tokens], temperature: [tokens].
 */
export function lmHead(hidden: Tensor, weight: Tensor, targets: Tensor, temperature: Tensor, options: LmHeadOptions = {}): TokenScores {
  const { packed = null, hasEntropy = false } = options
  return atomic(() => {
    const tape = recorder(hidden, weight)
    const rows = hidden.dim(0)
    const logprobs = empty(hidden.dtype, [rows])
    const entropy = hasEntropy ? empty(hidden.dtype, [rows]) : null
    const stats = tape === null ? null : empty(hidden.dtype, [rows, 2])
    lmHeadForward({
      hidden: hidden.handle,
      ...weightArguments('lmHead', weight, packed, 'forward'),
      targets: targets.handle,
      temperature: temperature.handle,
      logprob: logprobs.handle,
      entropy: entropy?.handle,
      stats: stats?.handle,
      vocabulary: packed === null ? 0 : weight.dim(0),
    })
    const inputs = [hidden, weight, targets, temperature]
    tape?.add('lm-head', inputs, entropy === null ? [logprobs] : [logprobs, entropy], [...inputs, stats], gradient)
    return { logprobs, entropy }
  })
}

function gradient(step: BackwardStep): void {
  if (step.gradientOrNull(1) !== null) refuse('lmHead', 'entropy', 'no gradient through the entropy', 'one')
  const [hidden, weight] = [step.held(0), step.held(1)]
  const sum = step.needs(1) ? step.into([1]) : null
  lmHeadBackward({
    dLogprob: step.gradient(0).handle,
    hidden: hidden.handle,
    weight: weight.handle,
    targets: step.held(2).handle,
    temperature: step.held(3).handle,
    stats: step.held(4).handle,
    dHidden: step.freshOrNull(0)?.handle,
    dWeight: sum?.tensors[0]?.handle,
    accumulate: sum?.accumulate ?? false,
  })
}
