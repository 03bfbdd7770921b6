/** The next token of each row and its log-probability, which is that of `lmHead` to the bit. For the engine: not differentiable. */
import { samplingFromHidden, samplingFromLogits } from '@trilithon/native'
import { atomic } from '../scope.ts'
import { refuseRecording } from '../tape.ts'
import { empty, type Tensor } from '../tensor.ts'
import { type PackedWeight, weightArguments } from './packed-weight.ts'

/** How to choose, row by row. */
export interface SamplingRules {
  /** [rows]; 0: the most likely token. */
  readonly temperature: Tensor
  /** i32 [rows]; 0: all. */
  readonly topK?: Tensor | null
  /** [rows]. */
  readonly topP?: Tensor | null
  /** [rows]. */
  readonly minP?: Tensor | null
  /** i64 [rows]: of the request. */
  readonly seeds: Tensor
  /** i32 [rows]: of the token in its sequence. */
  readonly positions: Tensor
}

export interface SampledTokens {
  /** i32 [rows]. */
  readonly tokens: Tensor
  /** [rows]. */
  readonly logprobs: Tensor
}

/** Chooses a token per row of logits, [rows, vocabulary]. */
export function sampleFromLogits(logits: Tensor, rules: SamplingRules): SampledTokens {
  refuseRecording('sampleFromLogits', 'logits', logits)
  return atomic(() => {
    const sampled = emptySample(logits)
    samplingFromLogits({
      logits: logits.handle,
      ...ruleArguments(rules),
      tokens: sampled.tokens.handle,
      logprob: sampled.logprobs.handle,
    })
    return sampled
  })
}

/** Chooses a token per row of hidden · weightᵀ, without storing all logits. hidden: [rows, width], weight: [vocabulary, width]. */
export function sampleFromHidden(hidden: Tensor, weight: Tensor, rules: SamplingRules, packed: PackedWeight | null = null): SampledTokens {
  refuseRecording('sampleFromHidden', 'hidden', hidden)
  return atomic(() => {
    const sampled = emptySample(hidden)
    samplingFromHidden({
      hidden: hidden.handle,
      ...weightArguments('sampleFromHidden', weight, packed, 'forward'),
      ...ruleArguments(rules),
      tokens: sampled.tokens.handle,
      logprob: sampled.logprobs.handle,
      vocabulary: packed === null ? 0 : weight.dim(0),
    })
    return sampled
  })
}

function emptySample(rows: Tensor): SampledTokens {
  return { tokens: empty('i32', [rows.dim(0)]), logprobs: empty(rows.dtype, [rows.dim(0)]) }
}

function ruleArguments({ temperature, topK, topP, minP, seeds, positions }: SamplingRules) {
  return {
    temperature: temperature.handle,
    topK: topK?.handle,
    topP: topP?.handle,
    minP: minP?.handle,
    seeds: seeds.handle,
    positions: positions.handle,
  }
}
