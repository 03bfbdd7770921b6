const at = (table: string, keys: string) => keys.split(' ').map((key) => (table === '' ? key : `${table}.${key}`))
const thinking = 'preserve_all_thinking preserve_thinking_between_tool_calls'
const text =
  'batch_size seq_len micro_batch_size name subsets splits probabilities stopping_strategy shuffle seed loss_mask.system loss_mask.user loss_mask.assistant loss_mask.tool'

/** Of the optimiser, its schedule and checkpoints: the trainer of RL and sft read the same. */
const optimKeys = [
  ...at('optim[adamw]', 'lr weight_decay max_norm betas1 betas2'),
  ...at('optim[sgd]', 'lr weight_decay max_norm nesterov momentum'),
  ...at('optim[muon]', 'lr weight_decay max_norm mu betas1 betas2'),
  ...at('optim[sign_sgd]', 'lr weight_decay max_norm'),
  ...at('scheduler[linear]', 'warmup_steps decay_steps min_lr'),
  ...at('scheduler[cosine]', 'warmup_steps min_lr'),
  ...at('ckpt', 'output_dir interval weights.save_sharded weights_only resume_step keep_last keep_interval'),
  ...at('ckpt', 'skip_progress skip_scheduler skip_dataloader skip_optimizer'),
]

/**
 * Keys that the code of a role reads, by root; a variant of a union is in brackets. A test of the runtime finds for every key of a role that can
 * be started an entry here, or metadata that refuses or reports it. Who writes the code that reads a key adds the key.
 */
export const trainerReadKeys: Readonly<Record<'trainer' | 'sft', readonly string[]>> = {
  trainer: [
    ...at('', 'output_dir clean_output_dir max_steps max_off_policy_steps numerics_profile'),
    ...at('model', 'name seq_len index_kl_weight debug.random_init'),
    ...at('tokenizer', 'name chat_template'),
    ...at('data.fake', 'batch_size generate_samples'),
    ...at('rollout_transport[zmq]', 'host port hwm'),
    ...at('loss[default]', 'dppo_mask_low dppo_mask_high adv_tau kl_tau'),
    ...at('loss[ipo]', 'ipo_threshold adv_tau kl_tau'),
    ...at('loss[custom]', 'import_path kwargs'),
    ...optimKeys,
    ...at('log', 'level json_logging'),
    ...at('bench', 'output_json'),
  ],
  sft: [
    ...at('', 'output_dir clean_output_dir max_steps numerics_profile'),
    ...at('model', 'name seq_len index_kl_weight debug.random_init'),
    ...at('tokenizer', 'name chat_template'),
    ...at('renderer[auto]', thinking),
    ...at('renderer[default]', thinking),
    ...at('renderer[qwen3]', `${thinking} enable_thinking`),
    ...at('renderer[glm-5]', `${thinking} enable_thinking clear_thinking`),
    ...at('renderer[glm-5.1]', `${thinking} enable_thinking clear_thinking`),
    ...at('data[sft]', text),
    ...at('data[fake]', 'batch_size seq_len micro_batch_size length input_ids'),
    ...at('val', 'interval eval_on_start'),
    ...at('val.data[sft]', text),
    ...optimKeys,
    ...at('log', 'level json_logging'),
    ...at('bench', 'output_json'),
    ...at('deployment[single_node]', 'gpus_per_node'),
  ],
}
