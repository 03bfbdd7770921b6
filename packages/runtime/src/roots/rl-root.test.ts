import { inferenceRoot } from '@trilithon/inference/configuration'
import { orchestratorRoot } from '@trilithon/orchestrator/configuration'
import { trainerRoot } from '@trilithon/trainer/configuration'
import { expect, test } from 'vitest'
import type { RlConfiguration } from './rl-configuration.ts'
import { rlRoot } from './rl-root.ts'
import { worldSizes } from './world-sizes.ts'

type Plain = Record<string, unknown>
interface Written {
  readonly rl?: Plain
  readonly trainer?: Plain
  readonly orchestrator?: Plain
  /** null: no inference in this run. */
  readonly inference?: Plain | null
}

function givenIn(written: object): (path: string) => boolean {
  return (path) => {
    let node: unknown = written
    for (const key of path.split('.')) node = typeof node === 'object' && node !== null ? (node as Plain)[key] : undefined
    return node !== undefined
  }
}

/** Role keys are parsed; what no schema knows counts as a plugin's value and is put in as it is. */
function role(root: typeof trainerRoot | typeof orchestratorRoot | typeof inferenceRoot, written: Plain): Plain {
  const own: Plain = {}
  const plugin: Plain = {}
  for (const [key, value] of Object.entries(written)) {
    const alone = root.schema.safeParse({ [key]: value })
    ;(alone.success ? own : plugin)[key] = value
  }
  const parsed = root.schema.parse(own) as Plain
  for (const [key, value] of Object.entries(plugin)) parsed[key] = merge(parsed[key], value)
  return (root.derive?.(parsed as never, givenIn(written)) as Plain | undefined) ?? parsed
}

function merge(base: unknown, over: unknown): unknown {
  const isTable = (value: unknown): value is Plain => typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isTable(base) || !isTable(over)) return over
  return { ...base, ...Object.fromEntries(Object.entries(over).map(([key, value]) => [key, merge(base[key], value)])) }
}

function resolve({ rl = {}, trainer = {}, orchestrator = {}, inference = {} }: Written): RlConfiguration {
  const { deployment, slurm, wandb, ...own } = rl
  const single = deployment === undefined || (deployment as Plain).type === 'single_node'
  const config = {
    ...rlRoot.schema.parse({ ...own, ...(single && deployment !== undefined ? { deployment } : {}) }),
    ...(single ? {} : { deployment }),
    slurm: slurm ?? null,
    wandb: wandb ?? null,
    trainer: role(trainerRoot, trainer),
    orchestrator: role(orchestratorRoot, orchestrator),
    inference: inference === null ? null : role(inferenceRoot, inference),
  } as never as RlConfiguration
  const written = { ...rl, trainer, orchestrator, ...(inference === null ? {} : { inference }) }
  return rlRoot.derive?.(config, givenIn(written)) as RlConfiguration
}

const pathsOf = (config: RlConfiguration, isGiven: (path: string) => boolean = () => false) =>
  [...(rlRoot.rules?.(config, isGiven) ?? [])].map((problem) => (typeof problem === 'string' ? '' : problem.path))

const twoNodes = {
  type: 'multi_node',
  gpus_per_node: 8,
  num_train_nodes: 1,
  num_infer_nodes: 2,
  num_infer_replicas: 1,
  nodes_per_fsdp_group: null,
  orchestrator_on_inference: false,
}
const onNodes = (over: Plain = {}): Plain => ({ slurm: {}, deployment: { ...twoNodes, ...over } })
const nccl = { type: 'nccl', host: 'localhost', port: 29501, timeout: 1200, quantize_in_weight_transfer: false }
const overNccl = (over: Plain = {}): Written => ({
  trainer: { weight_broadcast: { ...nccl, ...over } },
  orchestrator: { weight_broadcast: { ...nccl, ...over } },
  inference: { weight_broadcast: { type: 'nccl' } },
})

test('defaults are those of prime-rl', () => {
  expect(rlRoot.schema.parse({})).toEqual({
    plugins: [],
    numerics_profile: 'fp32',
    output_dir: 'outputs',
    clean_output_dir: false,
    log: { level: null, json_logging: false },
    ckpt: null,
    model: null,
    tokenizer: null,
    max_steps: null,
    seq_len: null,
    weight_broadcast: null,
    rollout_transport: null,
    max_inference_restarts: 3,
    bench: false,
    deployment: { type: 'single_node', gpus_per_node: 8, num_train_gpus: 1, num_infer_gpus: 1 },
    dry_run: false,
    experimental: {},
  })
})

test('the defaults break no rule', () => {
  expect(pathsOf(resolve({}))).toEqual([])
  expect(pathsOf(resolve({ inference: null }))).toEqual([])
})

test('one node: data ranks follow the GPUs', () => {
  const config = resolve({
    rl: { deployment: { type: 'single_node', num_train_gpus: 4, num_infer_gpus: 4 } },
    trainer: { model: { cp: 2 } },
    inference: { parallel: { tp: 2 } },
  })
  expect(config.orchestrator.num_train_workers).toBe(2)
  expect(config.inference).toMatchObject({ parallel: { tp: 2, dp: 2 }, api_server_count: 2 })
  expect(config.orchestrator.student.client.dp_rank_count).toBe(2)
  expect(worldSizes(config)).toMatchObject({ train: 4, inference: 4, inferenceGpus: 4 })
  expect(pathsOf(config)).toEqual([])
})

test('several nodes: every GPU is a rank', () => {
  const config = resolve({ rl: onNodes(), inference: { parallel: { tp: 2 } } })
  expect(config.orchestrator.num_train_workers).toBe(8)
  expect(config.inference).toMatchObject({ parallel: { tp: 2, dp: 4 }, data_parallel_size_local: 4, api_server_count: 4 })
  expect(config.orchestrator.student.client.dp_rank_count).toBe(1)
  expect(worldSizes(config)).toMatchObject({ train: 8, inference: 16, inferenceGpus: 16 })
  expect(pathsOf(config)).toEqual([])
})

test('an engine that is started again is waited for as long as at first, and no other', () => {
  const client = { wait_for_ready_timeout: 77 }
  const waits = (written: Written) =>
    resolve({ orchestrator: { student: { client } }, ...written }).orchestrator.student.client.recovery_timeout_seconds
  expect(waits({})).toBe(77)
  expect(waits({ rl: { max_inference_restarts: 0 } })).toBe(0)
  expect(waits({ inference: null })).toBe(0)
  expect(waits({ rl: onNodes() })).toBe(0)
  expect(waits({ orchestrator: { student: { client: { ...client, recovery_timeout_seconds: 5 } } } })).toBe(5)
})

test('dp may be counted over all nodes', () => {
  expect(pathsOf(resolve({ rl: onNodes(), inference: { parallel: { tp: 4, dp: 4 } } }))).toEqual([])
  expect(pathsOf(resolve({ rl: onNodes(), inference: { parallel: { tp: 4, dp: 3 } } }))).toEqual(['inference.parallel.dp'])
})

test('shared experts: dp spans the nodes', () => {
  const inference = { parallel: { tp: 2, dp: 8 }, enable_expert_parallel: true }
  const config = resolve({ rl: onNodes(), inference })
  expect(config.inference).toMatchObject({ data_parallel_size_local: 4, api_server_count: 4 })
  expect(worldSizes(config)).toMatchObject({ train: 8, inference: 16, inferenceGpus: 16 })
  expect(pathsOf(config)).toEqual([])
  expect(pathsOf(resolve({ rl: onNodes(), inference: { ...inference, parallel: { tp: 2, dp: 4 } } }))).toEqual(['inference.parallel.dp'])
  expect(pathsOf(resolve({ rl: onNodes(), inference: { ...inference, data_parallel_size_local: 2 } }))).toEqual([
    'inference.data_parallel_size_local',
  ])
})

test('FSDP groups decide the number of copies', () => {
  const config = resolve({ rl: onNodes({ num_train_nodes: 4, nodes_per_fsdp_group: 2 }) })
  expect(config.trainer.model).toMatchObject({ dp_replicate: 2 })
})

const disaggregated = { type: 'disaggregated', gpus_per_node: 8, backend_port: 8100, num_prefill_nodes: 1, num_decode_nodes: 1 }

test('disaggregated inference names the role of every engine', () => {
  const config = resolve({
    rl: onNodes({ num_infer_replicas: 2 }),
    inference: { deployment: disaggregated, slurm: {}, parallel: { tp: 4 } },
  })
  const once = ['prefill', 'prefill', 'decode', 'decode']
  expect(config.orchestrator.inference_metrics_roles).toEqual([...once, ...once])
  expect(pathsOf(config)).toEqual([])
})

test('nccl counts every GPU of inference', () => {
  const single = resolve({ rl: { deployment: { type: 'single_node', num_infer_gpus: 4 } }, ...overNccl() })
  expect(single.trainer.weight_broadcast).toMatchObject({ inference_world_size: 4, host: 'localhost' })
  const nodes = resolve({ rl: onNodes({ num_infer_replicas: 2 }), ...overNccl() })
  expect(nodes.trainer.weight_broadcast).toMatchObject({ inference_world_size: 32, host: '0.0.0.0' })
  expect(nodes.orchestrator.weight_broadcast).toMatchObject({ inference_world_size: 32, host: 'localhost' })
})

test('adapters go from the trainer to all roles', () => {
  const config = resolve({ trainer: { model: { lora: { rank: 12, alpha: 32 } } } })
  expect(config.orchestrator.student.model).toMatchObject({ lora: { name: 'r12-a32', rank: 12, alpha: 32 } })
  expect(config.inference).toMatchObject({ enable_lora: true, max_lora_rank: 16, api_server_count: 1 })
  expect(pathsOf(config)).toEqual([])
})

test('replay asks the engine for its experts, and goes with every store and router', () => {
  const kv_cache_offload = { type: 'mooncake', cpu: { num_bytes: 1 }, disk: null }
  const deployment = { ...disaggregated, router: { type: 'llm-d' } }
  const config = resolve({ rl: onNodes(), trainer: { enable_router_replay: true }, inference: { kv_cache_offload, deployment, slurm: {} } })
  expect(config.inference?.enable_return_routed_experts).toBe(true)
  expect(pathsOf(config)).toEqual([])
  expect(pathsOf(resolve({ inference: { kv_cache_offload } }))).toEqual([])
})

test('a measurement has the batch of the run', () => {
  const bench = { rl: { bench: true }, trainer: { bench: {} }, orchestrator: { bench: true, batch_size: 64 } }
  expect(resolve(bench).trainer.data.fake).toEqual({ batch_size: 64, generate_samples: false })
  expect(pathsOf(resolve(bench))).toEqual([])
})

test('the orchestrator finds the server', () => {
  const inference = { server: { host: '10.0.0.1', port: 9000 } }
  expect(resolve({ inference }).orchestrator.student.client.base_url).toEqual(['http://10.0.0.1:9000/v1'])
  const written = { inference, orchestrator: { student: { client: { base_url: ['http://proxy:9000/v1'], dp_rank_count: 3 } } } }
  expect(resolve(written).orchestrator.student.client).toMatchObject({ base_url: ['http://proxy:9000/v1'], dp_rank_count: 3 })
})

test('both sides have the key that one of them names', () => {
  for (const [server, client] of [
    [{ api_key_var: 'A' }, {}],
    [{}, { api_key_var: 'A' }],
    [{ api_key_var: 'A' }, { api_key_var: 'A' }],
  ]) {
    const { inference, orchestrator } = resolve({ inference: { server }, orchestrator: { student: { client } } })
    expect([inference?.server.api_key_var, orchestrator.student.client.api_key_var]).toEqual(['A', 'A'])
  }
})

test('the trainer checks the lag that the orchestrator keeps, and never a smaller one', () => {
  const bound = (trainer: Plain) => resolve({ orchestrator: { max_off_policy_steps: 3 }, trainer })
  expect(bound({}).trainer.max_off_policy_steps).toBe(3)
  expect(bound({ max_off_policy_steps: 5 }).trainer.max_off_policy_steps).toBe(5)
  expect(pathsOf(bound({ max_off_policy_steps: 5 }))).toEqual([])
  expect(pathsOf(bound({ max_off_policy_steps: 2 }))).toEqual(['trainer.max_off_policy_steps'])
})

test('the trainer of a run does not clean the folder of others', () => {
  expect(pathsOf(resolve({ trainer: { clean_output_dir: true } }))).toEqual(['trainer.clean_output_dir'])
})

test('deriving from a resolved configuration changes nothing', () => {
  for (const written of [{}, { rl: onNodes(), ...overNccl() }, { trainer: { model: { lora: { rank: 12, alpha: 32 } } } }] as Written[]) {
    const once = resolve(written)
    expect(rlRoot.derive?.(once, () => true)).toEqual(once)
  }
})

test.each<[string, Written, string]>([
  [
    'more GPUs than a node has',
    { rl: { deployment: { type: 'single_node', gpus_per_node: 4, num_train_gpus: 3, num_infer_gpus: 2 } } },
    'deployment.gpus_per_node',
  ],
  ['several nodes without Slurm', { rl: { deployment: twoNodes } }, 'deployment.type'],
  ['inference nodes without inference', { rl: onNodes(), inference: null }, 'deployment.num_infer_nodes'],
  ['inference without nodes', { rl: onNodes({ num_infer_nodes: 0 }), trainer: { data: { fake: {} } } }, 'deployment.num_infer_nodes'],
  ['nothing to train on', { rl: onNodes({ num_infer_nodes: 0 }), inference: null }, 'deployment.num_infer_nodes'],
  ['FSDP groups that do not divide', { rl: onNodes({ num_train_nodes: 3, nodes_per_fsdp_group: 2 }) }, 'deployment.nodes_per_fsdp_group'],
  ['ranks without GPUs', { inference: { parallel: { dp: 2 } } }, 'inference.parallel.dp'],
  ['tp that does not divide', { inference: { parallel: { tp: 2 } } }, 'inference.parallel.tp'],
  ['tp that does not divide a node', { rl: onNodes(), inference: { parallel: { tp: 3 } } }, 'inference.parallel.tp'],
  [
    'prefill and decode nodes that are not there',
    { rl: onNodes({ num_infer_nodes: 3 }), inference: { deployment: disaggregated, slurm: {} } },
    'deployment.num_infer_nodes',
  ],
  [
    'quantised weights by files',
    { rl: { weight_broadcast: { quantize_in_weight_transfer: true } }, trainer: { model: { impl: 'custom' } } },
    'weight_broadcast.quantize_in_weight_transfer',
  ],
  [
    'quantised weights of another implementation',
    { ...overNccl({ quantize_in_weight_transfer: true }) },
    'weight_broadcast.quantize_in_weight_transfer',
  ],
  ['balanced experts without quantised weights', { inference: { enable_eplb: true } }, 'inference.enable_eplb'],
  [
    'one GPU for nccl',
    { rl: { deployment: { type: 'single_node', num_infer_gpus: 0 } }, ...overNccl(), inference: null },
    'deployment.num_train_gpus',
  ],
  ['folders apart', { orchestrator: { output_dir: 'elsewhere/run_default' } }, 'orchestrator.output_dir'],
  ['another model served', { inference: { model: { name: 'Qwen/Qwen3-4B' } } }, 'inference.model.name'],
  ['another model sampled', { trainer: { model: { name: 'Qwen/Qwen3-4B' } }, inference: null }, 'orchestrator.student.model.name'],
  ['another chat template', { inference: { model: { chat_template: 'x' } } }, 'trainer.tokenizer.chat_template'],
  ['another number of steps', { trainer: { max_steps: 1 } }, 'orchestrator.max_steps'],
  ['sequences that do not fit', { trainer: { model: { seq_len: 1024 } } }, 'trainer.model.seq_len'],
  ['one of two measures', { trainer: { bench: {}, max_steps: 4 }, orchestrator: { max_steps: 4 } }, 'bench'],
  ['another profile', { inference: { numerics_profile: 'bf16' } }, 'inference.numerics_profile'],
  ['no checkpoints of the trainer', { orchestrator: { ckpt: {} } }, 'trainer.ckpt'],
  ['no checkpoints of the orchestrator', { trainer: { ckpt: {} } }, 'orchestrator.ckpt'],
  ['another interval', { trainer: { ckpt: { interval: 5 } }, orchestrator: { ckpt: {} } }, 'orchestrator.ckpt.interval'],
  ['another step to resume from', { trainer: { ckpt: { resume_step: 5 } }, orchestrator: { ckpt: {} } }, 'orchestrator.ckpt.resume_step'],
  ['offline with shared runs', { rl: { wandb: { offline: true } } }, 'wandb.offline'],
  ['wandb of one role', { trainer: { wandb: { project: 'p' } } }, 'orchestrator.wandb'],
  [
    'two wandb projects',
    { trainer: { wandb: { project: 'p' } }, orchestrator: { wandb: { project: 'q', name: null } } },
    'orchestrator.wandb',
  ],
  [
    'another rank',
    {
      trainer: { model: { lora: { rank: 8, alpha: 32 } } },
      orchestrator: { student: { model: { lora: { name: null, rank: 4, alpha: null } } } },
    },
    'orchestrator.student.model.lora.rank',
  ],
  [
    'another alpha',
    {
      trainer: { model: { lora: { rank: 8, alpha: 32 } } },
      orchestrator: { student: { model: { lora: { name: null, rank: null, alpha: 16 } } } },
    },
    'orchestrator.student.model.lora.alpha',
  ],
  ['adapters that are too large', { trainer: { model: { lora: { rank: 600, alpha: 32 } } } }, 'trainer.model.lora.rank'],
  [
    'another key',
    { inference: { server: { api_key_var: 'A' } }, orchestrator: { student: { client: { api_key_var: 'B' } } } },
    'inference.server.api_key_var',
  ],
  [
    'another port',
    { orchestrator: { student: { client: { base_url: ['http://localhost:8001/v1'] } } } },
    'orchestrator.student.client.base_url',
  ],
])('%s is one problem', (_, written, path) => {
  const { rl = {}, trainer = {}, orchestrator = {}, inference } = written
  expect(pathsOf(resolve(written), givenIn({ ...rl, trainer, orchestrator, inference }))).toEqual([path])
})

test('the types of weight broadcast agree in exactly two of eight cases', () => {
  const types = ['filesystem', 'nccl'] as const
  const table = (type: string) => (type === 'nccl' ? nccl : { type })
  const passing = types.flatMap((trainer) =>
    types.flatMap((orchestrator) =>
      types.filter((inference) => {
        const config = resolve({
          trainer: { weight_broadcast: table(trainer) },
          orchestrator: { weight_broadcast: table(orchestrator) },
          inference: { weight_broadcast: { type: inference } },
        })
        return pathsOf(config).length === 0
      }),
    ),
  )
  expect(passing).toHaveLength(2)
})

test('a model of the launcher may be quantised differently', () => {
  const config = resolve({
    trainer: { model: { name: 'zai-org/GLM-5.1' } },
    orchestrator: { student: { model: { name: 'zai-org/GLM-5.1-FP8' } } },
    inference: { model: { name: 'zai-org/GLM-5.1-FP8' } },
  })
  expect(pathsOf(config)).toEqual([])
})

test('engines elsewhere are told what a run needs of them', () => {
  const config = resolve({ trainer: { enable_router_replay: true, model: { lora: { rank: 8, alpha: 32 } } }, inference: null })
  const notices = [...(rlRoot.notices?.(config, () => true) ?? [])]
  expect(notices.filter((notice) => typeof notice === 'string')).toHaveLength(2)
})
