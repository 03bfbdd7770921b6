import { z } from 'zod'

/** Number of worker processes of an environment. */
export const EnvironmentWorkers = z.union([z.int().min(1), z.literal('auto')]).default('auto')

/** What is said of every environment: in training, in an evaluation and by the stand-alone server. */
export const EnvironmentTable = z.strictObject({
  id: z.string().min(1).default('reverse-text').describe('Built-in name, package, or path of a module; `name@version` picks a version.'),
  name: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe('Name in metrics and logs, without slashes; null takes the id without its version, of a path the name of the file.'),
  args: z.record(z.string(), z.json()).default({}).describe('Arguments that the environment itself defines.'),
  extra_env_kwargs: z.record(z.string(), z.json()).default({}).describe('Further settings handed to the environment as they are.'),
  address: z.string().min(1).nullable().default(null).describe('Address of an environment server that already runs; null starts one.'),
  num_workers: EnvironmentWorkers.describe('Worker processes; "auto" follows from the episodes in flight.'),
  ratio: z.number().gt(0).nullable().default(null).describe('Share of the batch, relative to the other environments; all set or none.'),
  max_retries: z.int().min(0).default(3).describe('How often a failed episode is tried again.'),
  max_total_completion_tokens: z
    .int()
    .min(-1)
    .default(-1)
    .describe('Sampled tokens that an episode may use over all turns; -1 is no limit.'),
  timeout: z.number().gt(0).nullable().default(null).describe('Seconds that an episode may take; null is no limit.'),
  state_columns: z.array(z.string()).default([]).describe('Fields of the episode state that are kept with the rollout.'),
})
