import { z } from 'zod'

/** Our own: prime-rl 0.6.0 has a fixed number of episodes in flight. */
export const AdaptiveConcurrencyTable = z.strictObject({
  initial_rollouts: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .describe('Episodes of training in flight at the beginning; null takes `batch_size`, or a quarter of `max_inflight_rollouts`.'),
  min_rollouts: z.int().min(1).nullable().default(null).describe('Never fewer than that; null takes the largest group.'),
  kv_cache_usage_limit: z
    .number()
    .gt(0)
    .max(1)
    .default(0.95)
    .describe('Share of the KV blocks of the fullest engine from which on fewer episodes are in flight.'),
})
