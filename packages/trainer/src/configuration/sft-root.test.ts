import { expect, test } from 'vitest'
import { sftRoot } from './sft-root.ts'
import { type SftConfiguration, SftSchema } from './sft-schema.ts'

const nothing = () => false

function resolve(written: object, plugin: { model?: object; top?: object } = {}): SftConfiguration {
  const parsed = SftSchema.parse(written)
  const merged = { ...parsed, ...plugin.top, model: { ...parsed.model, ...plugin.model } }
  return sftRoot.derive?.(merged, nothing) ?? merged
}

const pathsOf = (config: SftConfiguration) =>
  [...(sftRoot.rules?.(config, nothing) ?? [])].map((problem) => (typeof problem === 'string' ? '' : problem.path))

test('defaults are those of prime-rl', () => {
  const { model: _, log: __, ...config } = SftSchema.parse({})
  expect(config).toEqual({
    plugins: [],
    numerics_profile: 'fp32',
    tokenizer: { name: null, trust_remote_code: null, chat_template: null },
    renderer: null,
    data: {
      type: 'sft',
      batch_size: 128,
      seq_len: 128,
      pack_function: 'cat',
      micro_batch_size: 1,
      name: 'PrimeIntellect/Reverse-Text-SFT',
      subsets: null,
      splits: null,
      probabilities: null,
      stopping_strategy: 'all_exhausted',
      shuffle: true,
      seed: 0,
      loss_mask: { system: false, user: false, assistant: true, tool: false },
    },
    val: null,
    optim: { type: 'adamw', lr: 1e-6, weight_decay: 0.01, max_norm: 1, betas1: 0.9, betas2: 0.999 },
    scheduler: { type: 'constant' },
    ckpt: null,
    output_dir: 'outputs',
    clean_output_dir: false,
    matmul_precision: 'high',
    max_steps: null,
    memory_profiler_path: null,
    bench: null,
    gc: { interval: 50 },
    trace_path: null,
    dist_timeout_seconds: 600,
    loss_impl: 'torch',
    heartbeat: null,
    deployment: { type: 'single_node', gpus_per_node: 8, num_gpus: 1 },
    dry_run: false,
    experimental: {},
  })
  expect(SftSchema.parse({ val: {} }).val).toMatchObject({ interval: 50, eval_on_start: false, data: { type: 'sft', seq_len: 128 } })
  expect(SftSchema.parse({ data: { type: 'fake' } }).data).toEqual({
    type: 'fake',
    batch_size: 128,
    seq_len: 128,
    pack_function: 'cat',
    micro_batch_size: 1,
    length: 'fixed',
    input_ids: 'increasing',
  })
})

const multiNode = { type: 'multi_node', gpus_per_node: 8, num_nodes: 4, nodes_per_fsdp_group: null }

test('values follow from others', () => {
  expect(resolve({ model: { fused_lm_head_token_chunk_size: 'auto' } }).model.fused_lm_head_token_chunk_size).toBe('disabled')
  const grouped = resolve({}, { top: { slurm: {}, deployment: { ...multiNode, nodes_per_fsdp_group: 2 } } })
  expect(grouped.model).toMatchObject({ dp_replicate: 2 })
  const bench = resolve({ bench: {}, ckpt: {}, data: { type: 'sft', batch_size: 8, seq_len: 64 } })
  expect([bench.max_steps, bench.ckpt, bench.data]).toMatchObject([4, null, { type: 'fake', batch_size: 8, seq_len: 64 }])
})

test.each<[string, object, { model?: object; top?: object }, string]>([
  ['a batch that is no multiple', { data: { type: 'sft', batch_size: 3, micro_batch_size: 2 } }, {}, 'data.batch_size'],
  [
    'a validation batch that is no multiple',
    { val: { data: { type: 'sft', batch_size: 3, micro_batch_size: 2 } } },
    {},
    'val.data.batch_size',
  ],
  [
    'cp with stack',
    { data: { type: 'sft', pack_function: 'stack', seq_len: 256 }, deployment: { type: 'single_node', num_gpus: 2 } },
    { model: { cp: 2 } },
    'data.pack_function',
  ],
  [
    'cp that does not divide',
    { data: { type: 'sft', seq_len: 127 }, deployment: { type: 'single_node', num_gpus: 2 } },
    { model: { cp: 2 } },
    'data.seq_len',
  ],
  [
    'cp with micro-batches',
    { data: { type: 'sft', micro_batch_size: 2 }, deployment: { type: 'single_node', num_gpus: 2 } },
    { model: { cp: 2 } },
    'data.micro_batch_size',
  ],
  ['stack of odd lengths', { data: { type: 'sft', pack_function: 'stack', seq_len: 128 } }, {}, 'data.seq_len'],
  ['lists of different lengths', { data: { type: 'sft', subsets: ['a', 'b'], splits: ['train'] } }, {}, 'data.subsets'],
  [
    'a renderer for pictures',
    { renderer: { name: 'qwen3' }, model: { optimization_dtype: 'bfloat16', reduce_dtype: 'bfloat16' } },
    { model: { vlm: { freeze_vision_encoder: true } } },
    'renderer',
  ],
  ['a loss in chunks', { model: { fused_lm_head_token_chunk_size: 1024 } }, {}, 'model.fused_lm_head_token_chunk_size'],
  ['more GPUs than a node has', { deployment: { type: 'single_node', num_gpus: 9 } }, {}, 'deployment.num_gpus'],
  ['nodes without Slurm', {}, { top: { deployment: multiNode } }, 'deployment.type'],
  [
    'groups that do not divide',
    {},
    { top: { slurm: {}, deployment: { ...multiNode, nodes_per_fsdp_group: 3 } } },
    'deployment.nodes_per_fsdp_group',
  ],
  ['ep of hf models', { model: { impl: 'hf' }, deployment: { type: 'single_node', num_gpus: 2 } }, { model: { ep: 2 } }, 'model.ep'],
  ['cp that does not divide the ranks', {}, { model: { cp: 2 } }, 'model.cp'],
  ['copies that do not divide the ranks', {}, { model: { dp_replicate: 2 } }, 'model.dp_replicate'],
  ['ep that does not divide the ranks', {}, { model: { ep: 2 } }, 'model.ep'],
  ['muon with offloaded parameters', { optim: { type: 'muon' } }, { model: { fsdp_cpu_offload: true } }, 'model.fsdp_cpu_offload'],
  ['an endless trace', { trace_path: 't' }, {}, 'trace_path'],
])('%s is one problem', (_, written, plugin, path) => {
  expect(pathsOf(resolve(written, plugin))).toEqual([path])
})

test('GPUs of one node are said to be unused on several', () => {
  const noticesOf = (deployment: object) => [...(sftRoot.notices?.(resolve({}, { top: { slurm: {}, deployment } }), nothing) ?? [])]
  expect(noticesOf({ ...multiNode, num_gpus: 4 })).toContainEqual(expect.objectContaining({ path: 'deployment.num_gpus', unused: true }))
  expect(noticesOf({ type: 'single_node', gpus_per_node: 8, num_gpus: 4 })).not.toContainEqual(
    expect.objectContaining({ path: 'deployment.num_gpus' }),
  )
})

test('the defaults break no rule', () => {
  expect(pathsOf(resolve({}))).toEqual([])
})
