/**
 * Keys of the launcher that are read here: by the start of a run, by what follows from the deployment, or because the roles take them over. A test finds for every key of
 * a root that can be started an entry here, or metadata that refuses or reports it.
 */
export const launcherReadKeys: Readonly<Record<'rl', readonly string[]>> = {
  rl: [
    ...['output_dir', 'clean_output_dir', 'log.level', 'log.json_logging', 'max_steps', 'seq_len', 'bench', 'model.name'],
    'max_inference_restarts',
    ...['output_dir', 'interval', 'resume_step', 'keep_last', 'keep_interval'].map((key) => `ckpt.${key}`),
    ...['tokenizer.name', 'tokenizer.chat_template'],
    ...['type', 'port', 'timeout', 'quantize_in_weight_transfer'].map((key) => `weight_broadcast.${key}`),
    ...['host', 'port', 'hwm'].map((key) => `rollout_transport[zmq].${key}`),
    ...['gpus_per_node', 'num_train_gpus', 'num_infer_gpus'].map((key) => `deployment[single_node].${key}`),
  ],
}
