const at = (table: string, keys: string) => keys.split(' ').map((key) => (table === '' ? key : `${table}.${key}`))
const thinking = 'preserve_all_thinking preserve_thinking_between_tool_calls'
const environment =
  'id name args extra_env_kwargs address num_workers ratio max_retries max_total_completion_tokens timeout state_columns group_size'
const advantage = (table: string) => [
  ...at(`${table}[default]`, 'length_penalty.coef length_penalty.gate_by_correctness length_weighted_baseline normalize_by_deviation'),
  ...at(`${table}[custom]`, 'import_path kwargs'),
]
const filters = (table: string) => [
  ...at(`${table}.*[gibberish]`, 'enforce token_id_threshold logprob_offset'),
  ...at(`${table}.*[repetition]`, 'enforce window prob_threshold'),
  ...at(`${table}.*[zero_advantage]`, 'enforce'),
]

/**
 * Keys that the code of a role reads, by root; a variant of a union is in brackets, `*` an item of a list. A test of the runtime finds for every
 * key of a role that can be started an entry here, or metadata that refuses or reports it. Who writes the code that reads a key adds the key.
 */
export const orchestratorReadKeys: Readonly<Record<'orchestrator', readonly string[]>> = {
  orchestrator: [
    ...at('', 'training_mode output_dir tasks_per_minute batch_size token_batch_size oversampling_factor max_inflight_rollouts'),
    ...at(
      '',
      'group_size seq_len num_train_workers max_steps max_off_policy_steps max_async_level stall_timeout_seconds bench collect_inference_metrics weight_broadcast',
    ),
    ...at('adaptive_concurrency', 'initial_rollouts min_rollouts kv_cache_usage_limit'),
    ...at('student.model', 'name'),
    ...at('student.client', 'timeout connect_timeout wait_for_ready_timeout base_url api_key_var headers headers_from_env'),
    ...at('student.client', 'extra_headers_from_state skip_model_check dp_rank_count admin_base_url router_url recovery_timeout_seconds'),
    ...at('tokenizer', 'name chat_template'),
    ...at('renderer[auto]', thinking),
    ...at('renderer[default]', thinking),
    ...at('renderer[qwen3]', `${thinking} enable_thinking`),
    ...at('renderer[glm-5]', `${thinking} enable_thinking clear_thinking`),
    ...at('renderer[glm-5.1]', `${thinking} enable_thinking clear_thinking`),
    ...at('train', 'num_workers max_retries'),
    ...at('train.sampling', 'temperature max_completion_tokens extra_body'),
    ...at('train.env.*', environment),
    ...at('train.env.*.sampling', 'temperature max_completion_tokens extra_body'),
    ...advantage('train.env.*.advantage'),
    ...at('eval', 'num_examples group_size num_workers max_retries interval skip_first_step'),
    ...at('eval.sampling', 'temperature top_p top_k min_p max_completion_tokens extra_body'),
    ...at('eval.env.*', `${environment} num_examples interval`),
    ...at('eval.env.*.sampling', 'temperature top_p top_k min_p max_completion_tokens extra_body'),
    ...advantage('advantage'),
    ...filters('pre_batch_filters'),
    ...filters('post_batch_filters'),
    ...at('rollout_transport[zmq]', 'host port hwm'),
    ...at('log', 'level json_logging vf_level log_data interval'),
    ...at('ckpt', 'interval resume_step wait_for_weights_timeout keep_last keep_interval'),
  ],
}
