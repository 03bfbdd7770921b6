import { expect, test } from 'vitest'
import { inferenceRoot } from './inference-root.ts'
import { type InferenceConfiguration, InferenceSchema } from './inference-schema.ts'
import { reasoningParserOf, toolCallParserOf } from './parser-of.ts'

function resolve(written: object, plugin: object = {}): InferenceConfiguration {
  const merged = { ...InferenceSchema.parse(written), ...plugin } as InferenceConfiguration
  const given = { ...written, ...plugin }
  return inferenceRoot.derive?.(merged, (path) => (path.split('.')[0] ?? '') in given) ?? merged
}

const pathsOf = (config: InferenceConfiguration) =>
  [...(inferenceRoot.rules?.(config, () => false) ?? [])].map((problem) => (typeof problem === 'string' ? '' : problem.path))

test('defaults are those of prime-rl', () => {
  expect(InferenceSchema.parse({})).toEqual({
    plugins: [],
    numerics_profile: 'fp32',
    server: { host: null, port: 8000, api_key_var: 'VLLM_API_KEY', liveness_timeout_seconds: 30 },
    model: {
      name: 'Qwen/Qwen3-0.6B',
      trust_remote_code: false,
      dtype: 'auto',
      max_model_len: null,
      enforce_eager: false,
      chat_template: null,
      tool_call_parser: 'auto',
      reasoning_parser: 'auto',
      rope_scaling: null,
    },
    parallel: { tp: 1, dp: 1 },
    log: { level: 'info', vf_level: 'info', json_logging: false, log_data: false, interval: 10 },
    enable_prefix_caching: null,
    gpu_memory_utilization: 0.9,
    api_server_count: 1,
    data_parallel_size_local: null,
    data_parallel_rpc_port: 13345,
    seed: 0,
    enable_dbo: false,
    weight_broadcast: { type: 'filesystem' },
    use_pd_kv_transfer: false,
    enable_return_routed_experts: false,
    enable_fp32_lm_head: true,
    vllm_extra: {},
    deployment: { type: 'single_node', gpus_per_node: 8, backend_port: 8100 },
    output_dir: 'outputs',
    dry_run: false,
    experimental: {},
  })
})

const disaggregated = {
  type: 'disaggregated',
  gpus_per_node: 8,
  backend_port: 8100,
  num_prefill_nodes: 2,
  num_decode_nodes: 1,
  num_prefill_replicas: 1,
  num_decode_replicas: 1,
}

test('HTTP processes follow the engines', () => {
  expect(resolve({ parallel: { dp: 4 } }).api_server_count).toBe(4)
  expect(resolve({ parallel: { dp: 4 }, data_parallel_size_local: 2 }).api_server_count).toBe(2)
  expect(resolve({ parallel: { dp: 4 }, api_server_count: 3 }).api_server_count).toBe(3)
  expect(resolve({ api_server_count: 0 }).api_server_count).toBe(0)
  expect(resolve({ parallel: { dp: 4 } }, { enable_lora: true }).api_server_count).toBe(1)
  expect(resolve({ vllm_extra: { headless: true } }).api_server_count).toBe(0)
})

test('a store outside the engine turns the prefix cache on', () => {
  expect(resolve({}, { kv_cache_offload: { type: 'native' } }).enable_prefix_caching).toBe(true)
  expect(resolve({}).enable_prefix_caching).toBeNull()
})

test('the rank of adapters is rounded up to one that is served', () => {
  expect(resolve({}, { max_lora_rank: 9 })).toMatchObject({ max_lora_rank: 16 })
  expect(resolve({}, { max_lora_rank: 300 })).toMatchObject({ max_lora_rank: 320 })
})

test('a disaggregated deployment sets what it needs', () => {
  const config = resolve({ parallel: { tp: 2, dp: 1 } }, { deployment: disaggregated, slurm: {} })
  expect(config).toMatchObject({
    use_pd_kv_transfer: true,
    enable_expert_parallel: true,
    data_parallel_size_local: 4,
    api_server_count: 4,
    parallel: { tp: 2, dp: 4 },
  })
  expect(resolve({}, { deployment: disaggregated, slurm: {}, enable_expert_parallel: false })).toMatchObject({
    enable_expert_parallel: false,
  })
  expect(inferenceRoot.derive?.(config, () => true)).toEqual(config)
})

test.each<[string, object, object, string]>([
  ['several nodes without Slurm', {}, { deployment: { ...disaggregated, type: 'multi_node' } }, 'deployment.type'],
  [
    'prefill replicas that do not divide',
    {},
    { slurm: {}, deployment: { ...disaggregated, num_prefill_replicas: 3 } },
    'deployment.num_prefill_replicas',
  ],
  [
    'decode replicas that do not divide',
    {},
    { slurm: {}, deployment: { ...disaggregated, num_decode_replicas: 2 } },
    'deployment.num_decode_replicas',
  ],
  ['a store without a prefix cache', { enable_prefix_caching: false }, { kv_cache_offload: { type: 'native' } }, 'enable_prefix_caching'],
  ['a rank that is not served', {}, { max_lora_rank: 513 }, 'max_lora_rank'],
])('%s is one problem', (_, written, plugin, path) => {
  expect(pathsOf(resolve(written, plugin))).toEqual([path])
})

test('what prime-rl forbids and we do not', () => {
  const router = { type: 'llm-d' }
  const config = resolve({ enable_return_routed_experts: true }, { slurm: {}, deployment: { ...disaggregated, router } })
  expect(pathsOf(config)).toEqual([])
})

test('the defaults break no rule', () => {
  expect(pathsOf(resolve({}))).toEqual([])
})

test.each([
  ['deepseek-ai/DeepSeek-V3.2', 'deepseek_v32', 'deepseek_r1'],
  ['deepseek-ai/DeepSeek-V3.1', 'deepseek_v31', 'deepseek_r1'],
  ['zai-org/GLM-4.5', 'glm45', 'glm45'],
  ['zai-org/GLM-4.7', 'glm47', 'glm45'],
  ['zai-org/GLM-5.1-FP8', 'glm47', 'glm45'],
  ['MiniMaxAI/MiniMax-M2.5', 'minimax_m2', 'minimax_m2_append_think'],
  ['PrimeIntellect/INTELLECT-3', 'qwen3_coder', 'deepseek_r1'],
  ['nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16', 'qwen3_coder', 'nemotron_v3'],
  ['nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16', 'qwen3_coder', 'nano_v3'],
  ['stepfun-ai/Step-3.5-Flash', 'step3p5', 'step3p5'],
  ['Qwen/Qwen3.5-4B', 'qwen3_coder', 'qwen3'],
  ['Qwen/Qwen3-Coder-30B', 'qwen3_coder', null],
  ['Qwen/Qwen3-4B-Thinking-2507', 'hermes', 'deepseek_r1'],
  ['Qwen/Qwen3-4B-Instruct-2507', 'hermes', null],
  ['my/finetune-of-Qwen/Qwen3-4B', null, null],
])('%s has the parsers %s and %s', (model, tool, reasoning) => {
  expect([toolCallParserOf(model), reasoningParserOf(model)]).toEqual([tool, reasoning])
  expect(resolve({ model: { name: model } }).model).toMatchObject({ tool_call_parser: tool, reasoning_parser: reasoning })
})

test('a parser that is written stays, null too', () => {
  expect(resolve({ model: { tool_call_parser: null, reasoning_parser: 'think' } }).model).toMatchObject({
    tool_call_parser: null,
    reasoning_parser: 'think',
  })
})
