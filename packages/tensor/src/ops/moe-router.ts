/** Which experts a token goes to, and with what weights: chosen here, or given (replay). Gradients flow through the weights. */
import {
  type DType,
  moeRouterSigmoidBackward,
  moeRouterSigmoidForward,
  moeRouterSoftmaxBackward,
  moeRouterSoftmaxForward,
} from '@trilithon/native'
import { atomic } from '../scope.ts'
import { recorder } from '../tape.ts'
import { empty, type Tensor } from '../tensor.ts'

export interface Routing {
  /** [tokens, topK], by descending choice, or as given. */
  readonly ids: Tensor
  /** [tokens, topK]. */
  readonly weights: Tensor
}

interface GivenExperts {
  /** Experts per token. */
  readonly topK: number
  /** Experts to use instead of choosing, [tokens, topK]. */
  readonly given?: Tensor | null
  /** Where a row of `given` is missing (all bits set) its token chooses for itself. Otherwise such a row is refused. */
  readonly selectMissing?: boolean
}

export interface SoftmaxRouterOptions extends GivenExperts {
  /** Weights are divided by the sum over the chosen. */
  readonly isNormalised: boolean
}

/** Experts with the largest logits, weighted by softmax. logits: [tokens, experts]. */
export function softmaxRouter(logits: Tensor, options: SoftmaxRouterOptions): Routing {
  const { given = null, selectMissing = false, isNormalised: renormalise } = options
  return atomic(() => {
    const { ids, weights } = emptyRouting(logits, options)
    moeRouterSoftmaxForward({
      logits: logits.handle,
      given: given?.handle,
      ids: ids.handle,
      weights: weights.handle,
      renormalise,
      selectMissing,
    })
    recorder(logits)?.add('softmax-router', [logits], [weights, ids], [logits, ids], (step) => {
      const heldLogits = step.held(0)
      moeRouterSoftmaxBackward({
        dWeights: step.gradient(0).handle,
        logits: heldLogits.handle,
        ids: step.held(1).handle,
        dLogits: step.fresh(0, heldLogits).handle,
        renormalise,
      })
    })
    return { ids, weights }
  })
}

export interface SigmoidRouterOptions extends GivenExperts {
  /** Added for choosing only: [experts]. No gradient flows to it. */
  readonly bias?: Tensor | null
  /** Experts are chosen from the `groupsKept` best of `groups` groups. */
  readonly groups?: number
  readonly groupsKept?: number
  /** Weights are divided by their sum, before `scale`. */
  readonly isNormalised: boolean
  readonly scale: number
}

/** Experts with the largest sigmoid(logit) + bias, weighted by the sigmoids. logits: [tokens, experts]. */
export function sigmoidRouter(logits: Tensor, options: SigmoidRouterOptions): Routing {
  const { bias = null, given = null, groups = 1, groupsKept = 1, selectMissing = false, isNormalised: normalise, scale } = options
  return atomic(() => {
    const { ids, weights } = emptyRouting(logits, options)
    moeRouterSigmoidForward({
      logits: logits.handle,
      bias: bias?.handle,
      given: given?.handle,
      ids: ids.handle,
      weights: weights.handle,
      groups,
      groupsKept,
      normalise,
      scale,
      selectMissing,
    })
    recorder(logits)?.add('sigmoid-router', [logits], [weights, ids], [logits, ids], (step) => {
      const heldLogits = step.held(0)
      moeRouterSigmoidBackward({
        dWeights: step.gradient(0).handle,
        logits: heldLogits.handle,
        ids: step.held(1).handle,
        dLogits: step.fresh(0, heldLogits).handle,
        normalise,
        scale,
      })
    })
    return { ids, weights }
  })
}

/** The smallest type of ids in which no row of them looks like a missing one, as the routed layout has it. */
export function expertIdType(experts: number, topK: number): DType {
  const fits = (codes: number) => experts < codes || (experts === codes && topK >= 2)
  return fits(2 ** 8) ? 'u8' : fits(2 ** 16) ? 'u16' : 'i32'
}

function emptyRouting(logits: Tensor, { topK, given }: GivenExperts): Routing {
  const shape = [logits.dim(0), topK]
  return { ids: empty(given?.dtype ?? expertIdType(logits.dim(1), topK), shape), weights: empty(logits.dtype, shape) }
}
