/**
 * Keys that the code of a role reads, by root; a variant of a union is in brackets, `*` an item of a list. A test of the runtime finds for every
 * key of a role that can be started an entry here, or metadata that refuses or reports it. Who writes the code that reads a key adds the key.
 */
export const environmentReadKeys: Readonly<Record<'env-server', readonly string[]>> = {
  'env-server': [
    'output_dir',
    ...[
      'id',
      'name',
      'args',
      'extra_env_kwargs',
      'address',
      'num_workers',
      'max_retries',
      'max_total_completion_tokens',
      'timeout',
      'state_columns',
    ].map((key) => `env.${key}`),
    ...['level', 'vf_level', 'json_logging', 'log_data', 'interval'].map((key) => `log.${key}`),
  ],
}
