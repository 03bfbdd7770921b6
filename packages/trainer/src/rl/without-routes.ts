import type { Sample } from '@trilithon/core'

/** Without router replay the trainer chooses experts by its own weights, whatever the engine chose: their rows need not cross to its thread. */
export function withoutRoutes({ routedExperts: _, ...sample }: Sample): Sample {
  return sample
}
