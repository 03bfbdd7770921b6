const at = (table: string, keys: string) => keys.split(' ').map((key) => (table === '' ? key : `${table}.${key}`))

/**
 * Keys that the code of a role reads, by root; a variant of a union is in brackets, `*` an item of a list. A test of the runtime finds for every
 * key of a role that can be started an entry here, or metadata that refuses or reports it. Who writes the code that reads a key adds the key.
 */
export const inferenceReadKeys: Readonly<Record<'inference', readonly string[]>> = {
  inference: [
    ...at('server', 'host port api_key_var liveness_timeout_seconds'),
    ...at('model', 'name max_model_len chat_template'),
    ...at('parallel', 'dp'),
    ...at('log', 'level json_logging interval'),
    ...at('', 'enable_prefix_caching seed enable_return_routed_experts weight_broadcast output_dir numerics_profile'),
  ],
}
