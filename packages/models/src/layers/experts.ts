/** Shapes: T tokens, E experts, k experts of a token, H hidden. */
import { add, type ExpertExchange, type Routing, swigluFused, type Tensor } from '@trilithon/tensor'
import type { CommonConfig } from '../config/common-keys.ts'
import type { ExpertsConfig } from '../families/qwen3-moe/config.ts'
import { chosenShare, type RouterScores } from './chosen-share.ts'
import type { FeedForward, LayerCall } from './decoder-layer.ts'
import type { LayerWeights } from './layer-weights.ts'

/** Chooses experts by the logits of the gate, [T, E], or takes those that the call gives. */
export type Router = (logits: Tensor, call: LayerCall) => Routing

export interface ExpertsOptions {
  readonly router: Router
  /** What the router makes of a logit before it chooses. */
  readonly scores: RouterScores
  readonly exchange: ExpertExchange
  /** Added to the weighted sum of the experts. */
  readonly shared: ((h: Tensor) => Tensor) | null
}

/** The gate, the experts that it chooses, and their weighted sum. */
export function createExperts(
  weights: LayerWeights,
  prefix: string,
  config: CommonConfig & ExpertsConfig,
  { router, scores, exchange, shared }: ExpertsOptions,
): FeedForward {
  const gate = weights.projection(`${prefix}.gate.weight`)
  const gateUp = weights.projection(`${prefix}.experts.gate_up_proj`)
  const down = weights.projection(`${prefix}.experts.down_proj`)
  return (h, call) => {
    const logits = gate.apply(h)
    const { ids, weights: routeWeights } = router(logits, call)
    const { y, expertStarts } = exchange.run(h, ids, routeWeights, config.experts, (rows, starts) =>
      down.applyByExpert(swigluFused(gateUp.applyByExpert(rows, starts)), starts),
    )
    return {
      y: shared === null ? y : add(y, shared(h)),
      routes: ids,
      expertStarts,
      chosenShare: call.measuresRouting ? chosenShare(logits, ids, scores) : null,
    }
  }
}
