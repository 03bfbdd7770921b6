import type { OpaquePayload } from '@trilithon/core'

/** What the engine sampled for one prompt. All arrays have one entry per sampled token. */
export interface EngineAnswer {
  readonly completionIds: Uint32Array
  readonly logprobs: Float32Array
  readonly versions: Uint32Array
  readonly contextVersionsMin: Uint32Array
  readonly finishReason: 'stop' | 'length' | 'abort'
  /** Rows of prompt and completion but the last token; null where none were sent. */
  readonly routedExperts: OpaquePayload | null
}

/** Media type of the answer that carries numbers as bytes. */
export const binaryMediaType = 'application/x-trilithon-generate'

/** An answer of 200 that is not what it must be; `message` says where. */
export class AnswerFault extends Error {}

export function finishReasonOf(value: unknown): EngineAnswer['finishReason'] {
  if (value === 'stop' || value === 'length' || value === 'abort') return value
  throw new AnswerFault(`choices[0].finish_reason is ${JSON.stringify(value)}`)
}

/** Every logarithm of a probability is a number that is not above 0; anything else would poison the loss. */
export function refuseLogprobs(logprobs: Float32Array): void {
  const at = logprobs.findIndex((value) => !Number.isFinite(value) || value > 1e-3)
  if (at !== -1) throw new AnswerFault(`the log-probability of sampled token ${at} is ${logprobs[at]}`)
}
