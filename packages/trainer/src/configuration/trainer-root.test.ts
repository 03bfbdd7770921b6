import { expect, test } from 'vitest'
import { trainerRoot } from './trainer-root.ts'
import { type TrainerConfiguration, TrainerSchema } from './trainer-schema.ts'

const nothing = () => false

/** A resolved configuration with the keys of plugins put in, as the runtime does. */
function resolve(written: object, plugin: { model?: object; top?: object } = {}): TrainerConfiguration {
  const parsed = TrainerSchema.parse(written)
  const merged = { ...parsed, ...plugin.top, model: { ...parsed.model, ...plugin.model } }
  return trainerRoot.derive?.(merged, nothing) ?? merged
}

const problemsOf = (config: TrainerConfiguration) => [...(trainerRoot.rules?.(config, nothing) ?? [])]
const pathsOf = (config: TrainerConfiguration) => problemsOf(config).map((problem) => (typeof problem === 'string' ? '' : problem.path))

test('defaults are those of prime-rl', () => {
  expect(TrainerSchema.parse({})).toEqual({
    plugins: [],
    numerics_profile: 'fp32',
    model: {
      name: 'Qwen/Qwen3-0.6B',
      trust_remote_code: false,
      seq_len: 2048,
      attn: 'flash_attention_2',
      compile: null,
      ac: null,
      ac_offloading: null,
      impl: 'auto',
      optimization_dtype: 'float32',
      reduce_dtype: 'float32',
      moe_use_grouped_mm: true,
      index_cache: null,
      index_kl_weight: 0,
      freeze_moe_router: false,
      debug: { num_layers: null, random_init: false, force_balanced_routing: false },
      fused_lm_head_token_chunk_size: 'disabled',
    },
    tokenizer: { name: null, trust_remote_code: null, chat_template: null },
    data: { fake: null },
    loss: { type: 'default', dppo_mask_low: 0.2, dppo_mask_high: 0.2, adv_tau: 1, kl_tau: 1e-3 },
    optim: { type: 'adamw', lr: 1e-6, weight_decay: 0.01, max_norm: 1, betas1: 0.9, betas2: 0.999 },
    scheduler: { type: 'constant' },
    ckpt: null,
    weight_broadcast: { type: 'filesystem', save_sharded: true, save_format: 'safetensors' },
    rollout_transport: { type: 'filesystem' },
    log: { level: 'info', vf_level: 'info', json_logging: false, log_data: false, interval: 10, ranks_filter: [0] },
    output_dir: 'outputs',
    matmul_precision: 'high',
    max_steps: null,
    memory_profiler_path: null,
    bench: null,
    gc: { interval: 50 },
    trace_path: null,
    dist_timeout_seconds: 600,
    heartbeat: null,
    clean_output_dir: false,
    max_off_policy_steps: 8,
    max_concurrent_runs: 1,
    enable_token_export: false,
  })
})

test('variants have the defaults of prime-rl', () => {
  const optimOf = (type: string) => TrainerSchema.parse({ optim: { type } }).optim
  const base = { lr: 1e-6, weight_decay: 0.01, max_norm: 1 }
  expect(optimOf('sgd')).toEqual({ type: 'sgd', ...base, nesterov: true, momentum: 0.9 })
  expect(optimOf('muon')).toEqual({ type: 'muon', ...base, mu: 0.95, betas1: 0.9, betas2: 0.95 })
  expect(optimOf('sign_sgd')).toEqual({ type: 'sign_sgd', ...base })
  expect(TrainerSchema.parse({ scheduler: { type: 'linear' } }).scheduler).toEqual({
    type: 'linear',
    warmup_steps: 10,
    decay_steps: 10,
    min_lr: 0,
  })
  expect(TrainerSchema.parse({ scheduler: { type: 'cosine' } }).scheduler).toEqual({ type: 'cosine', warmup_steps: 10, min_lr: 0 })
  expect(TrainerSchema.parse({ loss: { type: 'ipo' } }).loss).toEqual({ type: 'ipo', ipo_threshold: 0.1, adv_tau: 1, kl_tau: 1e-3 })
  expect(TrainerSchema.parse({ loss: { type: 'custom', import_path: './loss.mjs#f' } }).loss).toEqual({
    type: 'custom',
    import_path: './loss.mjs#f',
    kwargs: {},
  })
  expect(TrainerSchema.parse({ rollout_transport: { type: 'zmq' } }).rollout_transport).toEqual({
    type: 'zmq',
    host: 'localhost',
    port: 5555,
    hwm: 10,
  })
})

test('an empty table enables what is null by default', () => {
  const config = TrainerSchema.parse({
    model: { ac: {}, ac_offloading: {}, compile: {}, index_cache: {} },
    ckpt: {},
    data: { fake: {} },
    bench: {},
  })
  expect(config.model.ac).toEqual({ mode: 'full', freq: 1, targets: ['norm'] })
  expect(config.model.ac_offloading).toEqual({ pin_memory: true, max_inflight_activations: 5 })
  expect(config.model.compile).toEqual({ fullgraph: false })
  expect(config.model.index_cache).toEqual({ topk_freq: 1, topk_pattern: null })
  expect(config.data.fake).toEqual({ batch_size: 2, generate_samples: false })
  expect(config.bench).toEqual({ output_json: null })
  expect(config.ckpt).toEqual({
    output_dir: null,
    interval: null,
    weights: { save_sharded: true, save_format: 'safetensors' },
    skip_gather_master_weights: false,
    weights_only: false,
    resume_step: null,
    keep_last: null,
    keep_interval: null,
    skip_progress: false,
    skip_scheduler: false,
    skip_dataloader: false,
    skip_optimizer: false,
  })
})

test('explicit null survives where it is not the default', () => {
  const config = TrainerSchema.parse({ gc: null, optim: { type: 'adamw', max_norm: null }, ckpt: { weights: null } })
  expect([config.gc, config.optim.max_norm, config.ckpt?.weights]).toEqual([null, null, null])
})

test('values follow from others', () => {
  expect(resolve({ model: { attn: 'flash_attention_4', impl: 'custom' } }).model.attn).toBe('fa4')
  expect(resolve({ model: { ac_offloading: {} } }).model.ac).toEqual({ mode: 'full', freq: 1, targets: ['norm'] })
  expect(resolve({ model: { fused_lm_head_token_chunk_size: 'auto' } }).model.fused_lm_head_token_chunk_size).toBe(8192)
  expect(resolve({ model: { name: 'm' } }).tokenizer).toEqual({ name: 'm', trust_remote_code: false, chat_template: null })
  expect(resolve({}, { model: { ep: 2, ep_comm_backend: 'deepep' } }).optim.max_norm).toBeNull()
  const bench = resolve({ bench: {}, ckpt: {}, max_steps: 100 })
  expect([bench.max_steps, bench.ckpt, bench.data.fake]).toEqual([4, null, { batch_size: 2, generate_samples: false }])
})

test('what was written and is overruled is said', () => {
  const config = resolve({}, { model: { ep: 2, ep_comm_backend: 'deepep' } })
  expect([...(trainerRoot.notices?.(config, nothing) ?? [])]).toEqual([{ path: 'optim.max_norm', message: expect.any(String) }])
})

test('deriving twice changes nothing', () => {
  const once = resolve({ bench: {}, model: { ac_offloading: {}, attn: 'flash_attention_4', impl: 'custom' } })
  expect(trainerRoot.derive?.(once, nothing)).toEqual(once)
})

test.each<[string, object, { model?: object; top?: object }, string]>([
  ['remote code in the custom implementation', { model: { trust_remote_code: true, impl: 'custom' } }, {}, 'model.trust_remote_code'],
  ['fa4 outside the custom implementation', { model: { attn: 'fa4' } }, {}, 'model.attn'],
  ['cp without flash attention', { model: { attn: 'sdpa' } }, { model: { cp: 2 } }, 'model.cp'],
  ['cp with FA3 outside the custom implementation', { model: { attn: 'flash_attention_3' } }, { model: { cp: 2 } }, 'model.cp'],
  ['selective recomputation of hf models', { model: { impl: 'hf', ac: { mode: 'selective' } } }, {}, 'model.ac.mode'],
  ['selective recomputation of nothing', { model: { ac: { mode: 'selective', targets: [] } } }, {}, 'model.ac.targets'],
  ['fp8 of hf models', { model: { impl: 'hf' } }, { model: { fp8: true } }, 'model.fp8'],
  ['ep of hf models', { model: { impl: 'hf' } }, { model: { ep: 2 } }, 'model.ep'],
  ['replay of hf models', { model: { impl: 'hf' } }, { top: { enable_router_replay: true } }, 'enable_router_replay'],
  ['two ways to offload', {}, { model: { fsdp_cpu_offload: true, optim_cpu_offload: true } }, 'model.optim_cpu_offload'],
  ['deepep without ep', {}, { model: { ep_comm_backend: 'deepep' } }, 'model.ep_comm_backend'],
  [
    'vision in fp32',
    { model: { reduce_dtype: 'bfloat16' } },
    { model: { vlm: { freeze_vision_encoder: true } } },
    'model.optimization_dtype',
  ],
  [
    'adapters with a trained vision encoder',
    { model: { optimization_dtype: 'bfloat16', reduce_dtype: 'bfloat16' } },
    { model: { vlm: { freeze_vision_encoder: false }, lora: {} } },
    'model.vlm.freeze_vision_encoder',
  ],
  ['muon with offloaded parameters', { optim: { type: 'muon' } }, { model: { fsdp_cpu_offload: true } }, 'model.fsdp_cpu_offload'],
  ['a long trace', { trace_path: 't', max_steps: 10 }, {}, 'trace_path'],
  ['an endless trace', { trace_path: 't' }, {}, 'trace_path'],
  [
    'several runs with an offloaded optimiser',
    { max_concurrent_runs: 2 },
    { model: { optim_cpu_offload: true } },
    'model.optim_cpu_offload',
  ],
  ['adapters over nccl', {}, { model: { lora: {} }, top: { weight_broadcast: { type: 'nccl' } } }, 'weight_broadcast.type'],
])('%s is one problem', (_, written, plugin, path) => {
  expect(pathsOf(resolve(written, plugin))).toEqual([path])
})

test('adapters apart from the weights need adapters', () => {
  const config = resolve({ ckpt: {} })
  const apart = { ...config, ckpt: { ...config.ckpt, weights: { save_adapter_separately: true } } } as unknown as TrainerConfiguration
  expect(pathsOf(apart)).toEqual(['ckpt.weights.save_adapter_separately'])
})

test('problems say what next', () => {
  for (const problem of problemsOf(resolve({ trace_path: 't', model: { attn: 'fa4' } }))) {
    expect(problem).toEqual({ message: expect.stringMatching(/\S/), path: expect.stringMatching(/\S/), hint: expect.stringMatching(/\.$/) })
  }
})

test('the defaults break no rule', () => {
  expect(pathsOf(resolve({}))).toEqual([])
})

test.each([
  [{ optim: { type: 'adamw', lr: Number.POSITIVE_INFINITY } }, 'optim.lr'],
  [{ optim: { type: 'adamw', max_norm: 0 } }, 'optim.max_norm'],
  [{ optim: { type: 'adamw', betas1: 1 } }, 'optim.betas1'],
  [{ model: { ac: { targets: ['everything'] } } }, 'model.ac.targets.0'],
  [{ model: { index_cache: { topk_pattern: 'FX' } } }, 'model.index_cache.topk_pattern'],
  [{ ckpt: { resume_step: -2 } }, 'ckpt.resume_step'],
  [{ max_steps: 0 }, 'max_steps'],
  [{ max_steps: 1.5 }, 'max_steps'],
  [{ max_steps: '5' }, 'max_steps'],
  [{ loss: { type: 'other' } }, 'loss.type'],
  [{ rollout_transport: { type: 'zmq', port: 0 } }, 'rollout_transport.port'],
  [{ rollout_transport: { type: 'zmq', port: 65_533 } }, 'rollout_transport.port'],
])('%j is refused at %s', (input, path) => {
  expect(TrainerSchema.safeParse(input).error?.issues.map((issue) => issue.path.join('.'))).toEqual([path])
})
