/**
 * What a loss sees of one sequence, per token, in double precision. Index i is about token i: its log-probability under the trainer and under the policy that
 * sampled it, both after temperature.
 */
export interface LossInputs {
  /** log pi. */
  readonly trainerLogprobs: Float64Array
  /** log mu. */
  readonly inferenceLogprobs: Float64Array
  readonly advantages: Float64Array
  /** 1 where the token is trained. Values of other tokens may be anything, NaN too, and must not matter. */
  readonly mask: Uint8Array
  /** Log-probability under a teacher (opd). */
  readonly teacherLogprobs?: Float64Array | undefined
}

/** What a loss says of one sequence. It is a sum over tokens; the trainer divides by the trained tokens of the whole batch, over all ranks. */
export interface SequenceLoss {
  /** Term of each token; 0 where it is not trained. */
  readonly losses: Float64Array
  /** Derivative of the sum by the trainer's log-probability of each token; 0 where it is not trained. */
  readonly gradients: Float64Array
  /** Means over tokens of the sequence, by name. */
  readonly metrics: Readonly<Record<string, number>>
}

export type Loss = (inputs: LossInputs) => SequenceLoss
