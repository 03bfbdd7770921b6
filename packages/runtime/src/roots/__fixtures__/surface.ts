/**
 * The configuration surface of prime-rl 0.6.0 as its tables list it: written down apart from the schemas, so that a key that is lost or invented
 * shows. A variant of a union is in brackets: `trainer.optim[sgd].nesterov`.
 */

const at = (paths: string, keys: string): string[] => words(paths).flatMap((path) => words(keys).map((key) => `${path}.${key}`))
const words = (text: string): string[] => text.trim().split(/\s+/)
/** One path per variant: `a[x].` and `a[y].` for `x y`. */
const variants = (paths: string, names: string): string => words(paths).flatMap((path) => words(names).map((name) => `${path}[${name}]`)).join(' ')

const renderers = 'orchestrator.renderer sft.renderer'
const thinking = 'preserve_all_thinking preserve_thinking_between_tool_calls'
const environments = 'orchestrator.train.env.* orchestrator.eval.env.* env-server.env'
const filters = 'orchestrator.pre_batch_filters.* orchestrator.post_batch_filters.*'
const advantages = 'orchestrator.advantage orchestrator.train.env.*.advantage'
const data = 'sft.data[sft] sft.val.data[sft]'
const scorers = words(
  'prefix-cache precise-prefix-cache queue kv-cache-utilization active-request load-aware running-requests-size token-load latency session-affinity lora-affinity',
)
const llmd = 'inference.deployment.router[llm-d]'

export const surface: readonly string[] = [
  // Shared building blocks.
  ...at('orchestrator.student orchestrator.teacher', 'model client'),
  ...at(
    'orchestrator.student.client orchestrator.teacher.client',
    `timeout connect_timeout wait_for_ready_timeout base_url api_key_var headers headers_from_env extra_headers_from_state skip_model_check
     dp_rank_count admin_base_url elastic elastic.hostname elastic.port elastic.sync_interval router_url`,
  ),
  ...at('trainer.log orchestrator.log inference.log sft.log env-server.log', 'level vf_level json_logging log_data interval'),
  ...at('trainer.log sft.log', 'ranks_filter'),
  ...at('rl.wandb trainer.wandb orchestrator.wandb sft.wandb', 'project entity name group tags offline'),
  ...at('orchestrator.wandb orchestrator.prime_monitor', 'log_extras'),
  ...at('orchestrator.wandb.log_extras orchestrator.prime_monitor.log_extras', 'samples distributions interval sample_ratio'),
  ...at('orchestrator.prime_monitor', 'base_url api_key_var run_name team_id frontend_url'),
  ...at('trainer.heartbeat orchestrator.heartbeat sft.heartbeat', 'url'),
  ...at('trainer.metrics_server', 'port host'),
  ...at('trainer.rollout_transport[zmq] orchestrator.rollout_transport[zmq]', 'host port hwm'),
  ...at(
    'rl.slurm inference.slurm sft.slurm',
    'job_name project_dir template_path partition nodelist exclude account time pre_run_command cleanup_grace_period',
  ),
  ...at('trainer.model inference.model orchestrator.student.model orchestrator.teacher.model sft.model', 'name trust_remote_code vlm'),
  ...at('rl.model', 'name vlm'),
  ...at(
    'rl.model.vlm trainer.model.vlm inference.model.vlm orchestrator.student.model.vlm orchestrator.teacher.model.vlm sft.model.vlm',
    'vision_encoder_attr language_model_attr freeze_vision_encoder',
  ),
  ...at('rl.tokenizer trainer.tokenizer orchestrator.tokenizer sft.tokenizer', 'name trust_remote_code chat_template'),

  // Renderers.
  ...at(
    variants(
      renderers,
      `auto default qwen3 qwen3-vl qwen3.5 qwen3.6 glm-4.5 glm-5 glm-5.1 gpt-oss kimi-k2 kimi-k2.5 minimax-m2 nemotron-3 deepseek-v3
       laguna-xs.2`,
    ),
    thinking,
  ),
  ...at(variants(renderers, 'default'), 'tool_parser reasoning_parser'),
  ...at(variants(renderers, 'qwen3 qwen3.5 qwen3.6 glm-4.5 glm-5 glm-5.1 kimi-k2 nemotron-3 deepseek-v3 laguna-xs.2'), 'enable_thinking'),
  ...at(variants(renderers, 'qwen3-vl qwen3.5 qwen3.6'), 'add_vision_id image_cache_max'),
  ...at(variants(renderers, 'glm-5 glm-5.1'), 'clear_thinking'),
  ...at(variants(renderers, 'gpt-oss'), 'reasoning_effort conversation_start_date use_system_prompt knowledge_cutoff model_identity'),
  ...at(variants(renderers, 'kimi-k2.5'), 'thinking image_cache_max'),
  ...at(variants(renderers, 'minimax-m2'), 'model_identity'),
  ...at(variants(renderers, 'nemotron-3'), 'truncate_history_thinking'),
  ...at(variants(renderers, 'laguna-xs.2'), 'render_assistant_messages_raw'),

  // rl.
  ...at(
    'rl',
    'output_dir clean_output_dir log ckpt wandb model tokenizer max_steps seq_len weight_broadcast bench deployment slurm dry_run experimental',
  ),
  ...at('rl.log', 'level json_logging'),
  ...at('rl.ckpt', 'output_dir interval resume_step keep_last keep_interval'),
  ...at('rl.weight_broadcast', 'type port timeout quantize_in_weight_transfer'),
  ...at('rl.deployment[single_node]', 'gpus_per_node num_train_gpus num_infer_gpus'),
  ...at(
    'rl.deployment[multi_node]',
    'gpus_per_node num_train_nodes num_infer_nodes num_infer_replicas nodes_per_fsdp_group orchestrator_on_inference',
  ),

  // trainer.
  ...at(
    'trainer',
    `model tokenizer data loss optim scheduler ckpt weight_broadcast rollout_transport log wandb output_dir matmul_precision max_steps
     enable_router_replay memory_profiler_path bench gc trace_path dist_timeout_seconds heartbeat metrics_server max_concurrent_runs
     enable_token_export`,
  ),
  ...at('trainer.data', 'fake fake.batch_size fake.generate_samples'),
  ...at('trainer sft', 'bench.output_json gc.interval'),
  ...at(
    'trainer.model sft.model',
    `seq_len attn compile compile.fullgraph ac ac.mode ac.freq ac.targets ac_offloading ac_offloading.pin_memory
     ac_offloading.max_inflight_activations fsdp_cpu_offload optim_cpu_offload reshard_after_forward dp_replicate ep cp ep_comm_backend
     deepep_num_sms deepep_token_chunk_size cp_style impl optimization_dtype reduce_dtype moe_use_grouped_mm fp8 index_cache
     index_cache.topk_freq index_cache.topk_pattern freeze_moe_router lora lora.rank lora.alpha lora.dropout lora.target_modules
     lora.modules_to_save debug debug.num_layers debug.random_init debug.force_balanced_routing fused_lm_head_token_chunk_size`,
  ),
  ...at(variants('trainer.optim sft.optim', 'adamw sgd muon sign_sgd'), 'lr weight_decay max_norm'),
  ...at(variants('trainer.optim sft.optim', 'adamw muon'), 'betas1 betas2'),
  ...at(variants('trainer.optim sft.optim', 'sgd'), 'nesterov momentum'),
  ...at(variants('trainer.optim sft.optim', 'muon'), 'mu'),
  ...at(variants('trainer.scheduler sft.scheduler', 'linear cosine'), 'warmup_steps min_lr'),
  ...at(variants('trainer.scheduler sft.scheduler', 'linear'), 'decay_steps'),
  ...at('trainer.loss[default]', 'dppo_mask_low dppo_mask_high adv_tau kl_tau'),
  ...at('trainer.loss[ipo]', 'ipo_threshold adv_tau kl_tau'),
  ...at(variants(`trainer.loss ${advantages}`, 'custom'), 'import_path kwargs'),
  ...at(
    'trainer.ckpt sft.ckpt',
    `output_dir interval weights weights.save_sharded weights.save_format weights.save_adapter_separately skip_gather_master_weights
     weights_only resume_step keep_last keep_interval skip_progress skip_scheduler skip_dataloader skip_optimizer`,
  ),
  ...at('trainer.weight_broadcast[filesystem]', 'save_sharded save_format'),
  ...at(
    'trainer.weight_broadcast[nccl] orchestrator.weight_broadcast[nccl]',
    'host port timeout inference_world_size quantize_in_weight_transfer',
  ),

  // orchestrator.
  ...at(
    'orchestrator',
    `training_mode student teacher train tokenizer renderer pool_size optim optim.lr eval advantage pre_batch_filters post_batch_filters log
     wandb prime_monitor collect_inference_metrics inference_metrics_roles ckpt weight_broadcast rollout_transport output_dir
     tasks_per_minute batch_size token_batch_size oversampling_factor max_inflight_rollouts group_size seq_len num_train_workers max_steps
     max_off_policy_steps bench heartbeat env_install_prerelease experimental`,
  ),
  ...at('orchestrator.student.model orchestrator.teacher.model', 'lora lora.name lora.rank lora.alpha'),
  ...at('orchestrator.train', 'env sampling num_workers max_retries'),
  ...at(
    'orchestrator.eval',
    'env sampling num_examples group_size num_workers max_retries interval skip_first_step',
  ),
  ...at(
    environments,
    'id name args extra_env_kwargs address num_workers ratio max_retries max_total_completion_tokens timeout state_columns',
  ),
  ...at('orchestrator.train.env.*', 'sampling group_size advantage'),
  ...at('orchestrator.eval.env.*', 'sampling num_examples group_size interval'),
  ...at('orchestrator.train.sampling orchestrator.train.env.*.sampling', 'temperature max_completion_tokens extra_body'),
  ...at(
    'orchestrator.eval.sampling orchestrator.eval.env.*.sampling',
    'temperature top_p top_k min_p max_completion_tokens reasoning_effort extra_body',
  ),
  ...at(
    variants(advantages, 'default'),
    'length_penalty length_penalty.coef length_penalty.gate_by_correctness length_weighted_baseline',
  ),
  ...at(variants(filters, 'gibberish'), 'enforce token_id_threshold logprob_offset'),
  ...at(variants(filters, 'repetition'), 'enforce window prob_threshold'),
  ...at(variants(filters, 'zero_advantage'), 'enforce'),
  ...at('orchestrator.ckpt', 'interval resume_step wait_for_weights_timeout keep_last keep_interval skip_progress'),

  // inference.
  ...at(
    'inference',
    `server server.host server.port server.liveness_timeout_seconds model parallel parallel.tp parallel.dp log enable_lora max_loras
     max_cpu_loras max_lora_rank lora_target_modules enable_prefix_caching gpu_memory_utilization api_server_count data_parallel_size_local
     data_parallel_rpc_port seed enable_expert_parallel all2all_backend enable_eplb enable_dbo use_deep_gemm weight_broadcast
     use_pd_kv_transfer enable_return_routed_experts enable_fp32_lm_head vllm_extra deployment slurm output_dir dry_run experimental`,
  ),
  ...at(
    'inference.model',
    'dtype max_model_len enforce_eager chat_template tool_call_parser reasoning_parser rope_scaling',
  ),
  ...at(variants('inference.kv_cache_offload', 'native mooncake'), 'cpu cpu.num_bytes disk disk.path'),
  ...at('inference.kv_cache_offload[mooncake]', 'device_name'),
  ...at(variants('inference.deployment', 'single_node multi_node disaggregated'), 'gpus_per_node backend_port'),
  ...at('inference.deployment[multi_node]', 'num_nodes'),
  ...at(
    'inference.deployment[disaggregated]',
    `num_prefill_nodes num_decode_nodes num_prefill_replicas num_decode_replicas prefill_port decode_port prefill_env_overrides
     decode_env_overrides prefill_vllm_overrides decode_vllm_overrides`,
  ),
  ...at('inference.deployment.router[vllm-router]', 'port policy'),
  ...at(llmd, 'port scorers prefill_scorer_overrides decode_scorer_overrides non_cached_tokens decode_sidecar_port'),
  ...['scorers', 'prefill_scorer_overrides', 'decode_scorer_overrides'].flatMap((key) => scorers.map((name) => `${llmd}.${key}.${name}-scorer`)),

  // env-server.
  ...at('env-server', 'env log env_install_prerelease output_dir'),

  // sft.
  ...at(
    'sft',
    `model tokenizer renderer data val optim scheduler ckpt log wandb output_dir clean_output_dir matmul_precision max_steps
     memory_profiler_path bench gc trace_path dist_timeout_seconds loss_impl heartbeat deployment slurm dry_run experimental`,
  ),
  ...at(`${data} sft.data[fake]`, 'batch_size seq_len pack_function micro_batch_size'),
  ...at(
    data,
    `name subsets splits probabilities stopping_strategy shuffle seed loss_mask loss_mask.system loss_mask.user loss_mask.assistant
     loss_mask.tool`,
  ),
  ...at('sft.data[fake]', 'length input_ids'),
  ...at('sft.val', 'interval eval_on_start data'),
  ...at('sft.deployment[single_node]', 'gpus_per_node num_gpus'),
  ...at('sft.deployment[multi_node]', 'gpus_per_node num_nodes nodes_per_fsdp_group'),
]

/** Keys that prime-rl does not have. */
export const ourKeys: readonly string[] = [
  ...at('rl trainer orchestrator inference sft env-server', 'plugins'),
  ...at('rl trainer inference sft', 'numerics_profile'),
  ...at('trainer.model sft.model', 'index_kl_weight'),
  'rl.max_inference_restarts',
  'orchestrator.max_async_level',
  'orchestrator.stall_timeout_seconds',
  'rl.rollout_transport',
  ...at('rl.rollout_transport[zmq]', 'host port hwm'),
  'orchestrator.adaptive_concurrency',
  ...at('orchestrator.adaptive_concurrency', 'initial_rollouts min_rollouts kv_cache_usage_limit'),
  ...at('orchestrator.student.client orchestrator.teacher.client', 'recovery_timeout_seconds'),
  ...at('orchestrator.advantage[default] orchestrator.train.env.*.advantage[default]', 'normalize_by_deviation'),
  ...at('trainer', 'max_off_policy_steps clean_output_dir'),
  'orchestrator.router[sticky].max_sessions',
  'inference.server.api_key_var',
  // A file for one node has it; prime-rl drops it without a word.
  'sft.deployment[multi_node].num_gpus',
  'inference.deployment.router[dynamo].port',
]
