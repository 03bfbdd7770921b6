import { invariant } from '@trilithon/core'
import type { Loss, LossInputs, SequenceLoss } from './loss.ts'

/** Which tokens lose their policy term: `difference` is pi - mu. */
type Drop = (difference: number, advantage: number) => boolean

interface PolicyOptions {
  readonly adv_tau: number
  readonly kl_tau: number
}

export interface DefaultLossOptions extends PolicyOptions {
  readonly dppo_mask_low: number
  readonly dppo_mask_high: number
}

export interface IpoLossOptions extends PolicyOptions {
  readonly ipo_threshold: number
}

/** Constants of distillation on the policy's own samples: prime-rl has no keys for them. */
const distillation: DefaultLossOptions = { dppo_mask_low: 0.2, dppo_mask_high: 0.2, adv_tau: 1, kl_tau: 1e-3 }

/**
 * The loss of RL. With w = pi/mu, which is neither clipped nor detached:
 *
 *     L = sum over trained tokens of  -(kept) · adv_tau · A · w  +  kl_tau · (log w)²
 *
 * A token is dropped where its probability moved too far in the direction of its advantage: pi - mu > high for A > 0, pi - mu < -low otherwise (A = 0
 * too). Dropped tokens keep the second term.
 */
export function createDefaultLoss(options: DefaultLossOptions): Loss {
  const drop = dropByDirection(options)
  return (inputs) => policyLoss(inputs, options, drop, (token) => inputs.advantages[token] ?? 0)
}

/** As the default, but a token is dropped where its probability moved too far either way: |pi - mu| > threshold. */
export function createIpoLoss(options: IpoLossOptions): Loss {
  const drop: Drop = (difference) => Math.abs(difference) > options.ipo_threshold
  return (inputs) => policyLoss(inputs, options, drop, (token) => inputs.advantages[token] ?? 0)
}

/** Distillation: the advantage is log teacher - log pi, not differentiated; the advantage that was shipped decides what is dropped. */
export const opdLoss: Loss = (inputs) => {
  const { teacherLogprobs: teacher, trainerLogprobs } = inputs
  invariant(teacher !== undefined, 'opd has log-probabilities of a teacher')
  const gap = (token: number) => (teacher[token] ?? 0) - (trainerLogprobs[token] ?? 0)
  const loss = policyLoss(inputs, distillation, dropByDirection(distillation), gap)
  return { ...loss, metrics: { ...loss.metrics, teacher_kl: meanWhere(inputs.mask, (token) => -gap(token)) } }
}

/** Cross entropy: minus the log-probability of what is there. */
export const sftLoss: Loss = ({ trainerLogprobs, mask }) => {
  const losses = new Float64Array(mask.length)
  const gradients = new Float64Array(mask.length)
  for (let token = 0; token < mask.length; token++) {
    if (mask[token] !== 1) continue
    losses[token] = -(trainerLogprobs[token] ?? 0)
    gradients[token] = -1
  }
  return { losses, gradients, metrics: { nll: meanWhere(mask, (token) => losses[token] ?? 0) } }
}

function dropByDirection({ dppo_mask_low: low, dppo_mask_high: high }: DefaultLossOptions): Drop {
  return (difference, advantage) => (advantage > 0 ? difference > high : difference < -low)
}

function policyLoss(
  inputs: LossInputs,
  { adv_tau, kl_tau }: PolicyOptions,
  drop: Drop,
  advantageOf: (token: number) => number,
): SequenceLoss {
  const { trainerLogprobs, inferenceLogprobs, advantages, mask } = inputs
  const losses = new Float64Array(mask.length)
  const gradients = new Float64Array(mask.length)
  const dropped = new Uint8Array(mask.length)
  for (let token = 0; token < mask.length; token++) {
    // Selected, never multiplied by the mask: 0 x NaN is NaN.
    if (mask[token] !== 1) continue
    const { logRatio, ratio, difference } = compare(trainerLogprobs[token] ?? 0, inferenceLogprobs[token] ?? 0)
    dropped[token] = Number(drop(difference, advantages[token] ?? 0))
    const policy = dropped[token] === 1 ? 0 : -adv_tau * advantageOf(token) * ratio
    losses[token] = policy + kl_tau * logRatio * logRatio
    // d ratio / d log pi = ratio
    gradients[token] = policy + 2 * kl_tau * logRatio
  }
  return { losses, gradients, metrics: policyMetrics(inputs, dropped) }
}

/** log w, w and pi - mu of one token. */
function compare(trainer: number, inference: number): { readonly logRatio: number; readonly ratio: number; readonly difference: number } {
  const logRatio = trainer - inference
  return { logRatio, ratio: Math.exp(logRatio), difference: Math.exp(trainer) - Math.exp(inference) }
}

/** w - log w - 1, the k3 estimator of the divergence between trainer and sampler; never negative, and exactly 0 where they agree. */
export function mismatchKl(trainerLogprob: number, inferenceLogprob: number): number {
  const logRatio = trainerLogprob - inferenceLogprob
  return Math.expm1(logRatio) - logRatio
}

/** Each is a mean over the tokens that its name says, 0 where there are none. */
function policyMetrics({ trainerLogprobs, inferenceLogprobs, advantages, mask }: LossInputs, dropped: Uint8Array): Record<string, number> {
  const kept = mask.map((flag, token) => Number(flag === 1 && dropped[token] === 0))
  const kl = (token: number) => mismatchKl(trainerLogprobs[token] ?? 0, inferenceLogprobs[token] ?? 0)
  const isUp = (token: number) => (advantages[token] ?? 0) > 0
  const isDown = (token: number) => (advantages[token] ?? 0) < 0
  const isDropped = (token: number) => dropped[token] === 1
  return {
    mismatch_kl: meanWhere(mask, kl),
    masked_mismatch_kl: meanWhere(dropped, kl),
    unmasked_mismatch_kl: meanWhere(kept, kl),
    is_masked: meanWhere(mask, (token) => Number(isDropped(token))),
    is_masked_low: meanWhere(mask, (token) => Number(isDropped(token) && isDown(token))),
    is_masked_high: meanWhere(mask, (token) => Number(isDropped(token) && isUp(token))),
    masked_advantage_positive: meanWhere(dropped, (token) => Number(isUp(token))),
    masked_advantage_negative: meanWhere(dropped, (token) => Number(isDown(token))),
  }
}

/** Mean of a value over the tokens whose flag is 1; 0 where none is. */
export function meanWhere(flags: Uint8Array, value: (token: number) => number): number {
  let sum = 0
  let count = 0
  for (let token = 0; token < flags.length; token++) {
    if (flags[token] !== 1) continue
    sum += value(token)
    count++
  }
  return count === 0 ? 0 : sum / count
}
