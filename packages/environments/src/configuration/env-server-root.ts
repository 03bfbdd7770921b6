import { defineConfigurationRoot, LogTable, PluginPaths } from '@trilithon/core'
import { z } from 'zod'
import { EnvironmentTable } from './environment-table.ts'

/** The root `env-server`: one environment served by itself, for orchestrators elsewhere. */
export const envServerRoot = defineConfigurationRoot({
  name: 'env-server',
  schema: z.strictObject({
    plugins: PluginPaths,
    env: EnvironmentTable.prefault({}).describe('The environment that is served.'),
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
