import { defineConfigurationRoot, LogTable, PluginPaths } from '@trilithon/core'
import { z } from 'zod'
import { EnvironmentTable } from './environment-table.ts'

/** What is said of an environment that is served. Limits are the most that an orchestrator may ask for. */
const ServedEnvironmentTable = EnvironmentTable.extend({
  address: z.string().min(1).nullable().default(null).describe('Address to listen at, as tcp://host:port; null is tcp://127.0.0.1:5000.'),
  ratio: z.number().gt(0).nullable().default(null).meta({
    description: 'Share of the batch, relative to the other environments.',
    unavailable: 'A server has one environment; shares are written in the configuration of the orchestrator.',
  }),
  max_retries: z.int().min(0).default(3).describe('How often a failed episode is tried again at most.'),
  max_total_completion_tokens: z
    .int()
    .min(-1)
    .default(-1)
    .describe('Sampled tokens that an episode may use over all turns at most; -1 is no limit but that of the orchestrator.'),
  timeout: z
    .number()
    .gt(0)
    .nullable()
    .default(null)
    .describe('Seconds that an episode may take at most; null is no limit but that of the orchestrator.'),
  state_columns: z
    .array(z.string())
    .default([])
    .describe('Fields of the outcome that are kept, beside those that the orchestrator asks for.'),
})

/** The root `env-server`: one environment served by itself, for orchestrators elsewhere. */
export const envServerRoot = defineConfigurationRoot({
  name: 'env-server',
  schema: z.strictObject({
    plugins: PluginPaths,
    env: ServedEnvironmentTable.prefault({}).describe('The environment that is served.'),
    log: LogTable.prefault({}).describe('Log lines.'),
    env_install_prerelease: z.boolean().default(false).meta({
      description: 'Allow prereleases when environments are installed.',
      unavailable: 'Environments are not installed on demand yet.',
    }),
    output_dir: z.string().min(1).default('outputs').describe('Folder of logs.'),
  }),
  moves: [{ from: 'env.timeout_seconds', to: 'env.timeout' }],
  derive: (config) => ({ ...config, env: { ...config.env, num_workers: config.env.num_workers === 'auto' ? 1 : config.env.num_workers } }),
})

/** The resolved configuration of the root `env-server`. */
export type EnvironmentServerConfiguration = z.output<typeof envServerRoot.schema>
