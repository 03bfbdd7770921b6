import { expect, test } from 'vitest'
import { orchestratorRoot } from './orchestrator-root.ts'
import { type OrchestratorConfiguration, OrchestratorSchema } from './orchestrator-schema.ts'
import { rendererOf } from './renderer-of.ts'

type Plain = Record<string, unknown>

/** Whether a key was written, as the runtime answers it. */
function givenIn(written: object): (path: string) => boolean {
  return (path) => {
    let node: unknown = written
    for (const key of path.split('.')) node = typeof node === 'object' && node !== null ? (node as Plain)[key] : undefined
    return node !== undefined
  }
}

function resolve(written: object, plugin: object = {}): OrchestratorConfiguration {
  const merged = { ...OrchestratorSchema.parse(written), ...plugin }
  return orchestratorRoot.derive?.(merged, givenIn(written)) ?? merged
}

const pathsOf = (config: OrchestratorConfiguration) =>
  [...(orchestratorRoot.rules?.(config, () => false) ?? [])].map((problem) => (typeof problem === 'string' ? '' : problem.path))

test('defaults are those of prime-rl', () => {
  const client = {
    timeout: 1200,
    connect_timeout: 30,
    wait_for_ready_timeout: 1800,
    recovery_timeout_seconds: 0,
    base_url: ['http://localhost:8000/v1'],
    api_key_var: 'VLLM_API_KEY',
    headers: {},
    headers_from_env: {},
    extra_headers_from_state: {},
    skip_model_check: false,
    dp_rank_count: 1,
    admin_base_url: null,
    elastic: null,
    router_url: null,
  }
  const sampling = { temperature: 1, max_completion_tokens: null, extra_body: {} }
  const filters = (enforce: boolean) => [
    { type: 'gibberish', enforce: false, token_id_threshold: 100_000, logprob_offset: 2 },
    { type: 'repetition', enforce: false, window: 3000, prob_threshold: 0.99 },
    { type: 'zero_advantage', enforce },
  ]
  expect(OrchestratorSchema.parse({})).toEqual({
    plugins: [],
    training_mode: 'rl',
    student: { model: { name: 'Qwen/Qwen3-0.6B', trust_remote_code: false }, client },
    teacher: null,
    train: {
      env: [
        {
          id: 'reverse-text',
          name: null,
          args: {},
          extra_env_kwargs: {},
          address: null,
          num_workers: 'auto',
          ratio: null,
          max_retries: 3,
          max_total_completion_tokens: -1,
          timeout: null,
          state_columns: [],
          sampling,
          group_size: 1,
          advantage: null,
        },
      ],
      sampling,
      num_workers: 'auto',
      max_retries: 3,
    },
    tokenizer: { name: null, trust_remote_code: null, chat_template: null },
    renderer: { name: 'auto', preserve_all_thinking: false, preserve_thinking_between_tool_calls: false },
    pool_size: null,
    optim: { lr: 1e-4 },
    eval: null,
    advantage: { type: 'default', length_penalty: null, length_weighted_baseline: false, normalize_by_deviation: false },
    pre_batch_filters: filters(false),
    post_batch_filters: filters(true),
    log: { level: 'info', vf_level: 'info', json_logging: false, log_data: false, interval: 10 },
    collect_inference_metrics: true,
    inference_metrics_roles: null,
    ckpt: null,
    weight_broadcast: { type: 'filesystem' },
    rollout_transport: { type: 'filesystem' },
    output_dir: 'outputs/run_default',
    tasks_per_minute: null,
    batch_size: null,
    token_batch_size: null,
    oversampling_factor: null,
    max_inflight_rollouts: null,
    group_size: 1,
    seq_len: 2048,
    num_train_workers: 1,
    max_steps: null,
    max_off_policy_steps: 8,
    max_async_level: 1,
    stall_timeout_seconds: 1800,
    adaptive_concurrency: null,
    bench: false,
    heartbeat: null,
    env_install_prerelease: false,
    experimental: {},
  })
})

test('an empty table enables what is null by default', () => {
  const config = OrchestratorSchema.parse({ eval: {}, ckpt: {}, advantage: { type: 'default', length_penalty: {} } })
  expect(config.eval).toMatchObject({
    num_examples: -1,
    group_size: 1,
    num_workers: 'auto',
    max_retries: 3,
    interval: 100,
    skip_first_step: false,
  })
  expect(config.eval?.env).toMatchObject([{ id: 'reverse-text', num_examples: -1, group_size: 1, interval: 100 }])
  expect(config.ckpt).toEqual({
    interval: null,
    resume_step: null,
    wait_for_weights_timeout: null,
    keep_last: null,
    keep_interval: null,
    skip_progress: false,
  })
  expect(config.advantage).toMatchObject({ length_penalty: { coef: 0.25, gate_by_correctness: false } })
})

test('a list given replaces the default list', () => {
  const config = OrchestratorSchema.parse({ post_batch_filters: [{ type: 'gibberish', enforce: true }] })
  expect(config.post_batch_filters).toEqual([{ type: 'gibberish', enforce: true, token_id_threshold: 100_000, logprob_offset: 2 }])
})

test('a model renderer has its own keys, the default one passes what it does not know', () => {
  expect(OrchestratorSchema.parse({ renderer: { name: 'qwen3.5', enable_thinking: true } }).renderer).toMatchObject({
    enable_thinking: true,
  })
  expect(OrchestratorSchema.safeParse({ renderer: { name: 'qwen3-vl', enable_thinking: true } }).success).toBe(false)
  expect(OrchestratorSchema.parse({ renderer: { name: 'default', reasoning_parser: 'think', tone: 'dry' } }).renderer).toMatchObject({
    reasoning_parser: 'think',
    tone: 'dry',
  })
})

test('old spellings move', () => {
  const moves = (orchestratorRoot.moves ?? []).map(({ from, to, keep }) => `${from} > ${to}${keep === undefined ? '' : ` (${keep})`}`)
  expect(moves).toEqual([
    'client > student.client (from)',
    'model > student (from)',
    'teacher_model > teacher',
    'student.name > student.model.name (from)',
    'student.trust_remote_code > student.model.trust_remote_code (from)',
    'student.vlm > student.model.vlm (from)',
    'student.lora > student.model.lora (from)',
    'env > train.env (to)',
    'sampling > train.sampling (to)',
    'rollouts_per_example > group_size',
    'train.env.*.rollouts_per_example > train.env.*.group_size',
    'eval.rollouts_per_example > eval.group_size',
    'eval.env.*.rollouts_per_example > eval.env.*.group_size',
    'train.sampling.max_tokens > train.sampling.max_completion_tokens',
    'train.env.*.sampling.max_tokens > train.env.*.sampling.max_completion_tokens',
    'eval.sampling.max_tokens > eval.sampling.max_completion_tokens',
    'eval.env.*.sampling.max_tokens > eval.env.*.sampling.max_completion_tokens',
    'train.env.*.timeout_seconds > train.env.*.timeout',
    'eval.env.*.timeout_seconds > eval.env.*.timeout',
  ])
})

test('the batch decides how many episodes are in flight', () => {
  const inflight = (written: object) => {
    const { batch_size, max_inflight_rollouts } = resolve(written)
    return [batch_size, max_inflight_rollouts]
  }
  expect(inflight({})).toEqual([128, 128])
  expect(inflight({ batch_size: 64, oversampling_factor: 1.5, group_size: 8 })).toEqual([64, 96])
  expect(inflight({ batch_size: 16, oversampling_factor: 0.1, group_size: 16 })).toEqual([16, 16])
  expect(inflight({ batch_size: 64, max_inflight_rollouts: 300 })).toEqual([64, 300])
  expect(inflight({ token_batch_size: 10_000, max_inflight_rollouts: 5 })).toEqual([null, 5])
})

test('train environments follow what is said above them, unless they say it themselves', () => {
  const written = {
    seq_len: 512,
    batch_size: 512,
    group_size: 4,
    train: {
      max_retries: 1,
      sampling: { temperature: 0.7, extra_body: { a: 1 } },
      env: [{ id: 'one' }, { id: 'two', group_size: 2, max_retries: 5, num_workers: 9, timeout: 60, sampling: { temperature: 0.9 } }],
    },
  }
  const [one, two] = resolve(written).train.env
  expect(one).toMatchObject({
    group_size: 4,
    max_retries: 1,
    num_workers: 2,
    sampling: { temperature: 0.7 },
    advantage: { type: 'default' },
  })
  expect(one?.sampling.extra_body).toEqual({ a: 1, top_k: -1, min_p: 0, return_token_ids: true })
  expect(one?.extra_env_kwargs).toEqual({ max_seq_len: 512, max_total_completion_tokens: -1 })
  expect(two).toMatchObject({ group_size: 2, max_retries: 5, num_workers: 9, sampling: { temperature: 0.9, extra_body: { a: 1 } } })
  expect(two?.extra_env_kwargs).toEqual({ max_seq_len: 512, max_total_completion_tokens: -1, timeout_seconds: 60 })
})

test('an advantage of null is a value of its own', () => {
  expect(resolve({ train: { env: [{ advantage: null }] } }).train.env[0]?.advantage).toBeNull()
  expect(resolve({ advantage: null }).train.env[0]?.advantage).toBeNull()
})

test('evaluations follow their group, and count their workers', () => {
  const written = {
    eval: { num_examples: 600, group_size: 2, interval: 10, env: [{ id: 'a' }, { id: 'b', num_examples: -1, interval: 5 }] },
  }
  expect(resolve(written).eval?.env).toMatchObject([
    { num_examples: 600, group_size: 2, interval: 10, num_workers: 5 },
    { num_examples: -1, group_size: 2, interval: 5, num_workers: 4 },
  ])
  // What follows can be read back.
  const endless = { eval: { num_examples: Number.MAX_SAFE_INTEGER, group_size: 1000, env: [{ id: 'a' }] } }
  expect(resolve(endless).eval?.env[0]?.num_workers).toBe(Number.MAX_SAFE_INTEGER)
})

test('other values follow', () => {
  const config = resolve(
    { student: { model: { name: 'Qwen/Qwen3-4B' } } },
    { wandb: { name: 'w' }, prime_monitor: { run_name: null, log_extras: {} } },
  )
  expect(config.tokenizer).toMatchObject({ name: 'Qwen/Qwen3-4B', trust_remote_code: false })
  expect(config.student.client.extra_headers_from_state).toEqual({ 'X-Session-ID': 'trajectory_id' })
  expect(config).toMatchObject({ prime_monitor: { run_name: 'w' } })
  expect(resolve({ training_mode: 'sft', teacher: {} }).renderer).toBeNull()
  expect(resolve({ training_mode: 'sft', teacher: {} }).train.env[0]?.sampling.extra_body).toEqual({})
  const bench = resolve({ bench: true, max_steps: 100, eval: {} }, { wandb: { name: null, log_extras: {} } })
  expect(bench).toMatchObject({ max_steps: 4, eval: null, wandb: { log_extras: null } })
})

test('deriving from a resolved configuration changes nothing', () => {
  const once = resolve({
    batch_size: 64,
    group_size: 8,
    oversampling_factor: 2,
    eval: {},
    train: { sampling: { temperature: 0.5 }, env: [{ id: 'a' }, { id: 'b' }] },
  })
  expect(orchestratorRoot.derive?.(once, () => true)).toEqual(once)
})

test.each<[string, object, string]>([
  ['a teacher in rl', { teacher: {} }, 'teacher'],
  ['no teacher in opd', { training_mode: 'opd' }, 'teacher'],
  ['a pool of no renderers', { renderer: null, pool_size: 2 }, 'pool_size'],
  ['an unknown model', { student: { model: { name: 'some/model' } } }, 'renderer.name'],
  ['thinking that a template drops', { renderer: { name: 'default', preserve_all_thinking: true } }, 'renderer.preserve_all_thinking'],
  ['two kinds of batch', { batch_size: 8, token_batch_size: 8 }, 'token_batch_size'],
  ['oversampled tokens', { token_batch_size: 8, max_inflight_rollouts: 8, oversampling_factor: 2 }, 'oversampling_factor'],
  ['tokens without a bound', { token_batch_size: 8 }, 'max_inflight_rollouts'],
  ['half a group', { batch_size: 10, group_size: 4 }, 'batch_size'],
  ['two numbers in flight', { batch_size: 8, oversampling_factor: 2, max_inflight_rollouts: 8 }, 'max_inflight_rollouts'],
  ['less than a group in flight', { batch_size: 8, group_size: 8, max_inflight_rollouts: 4 }, 'max_inflight_rollouts'],
  ['two environments of one name', { train: { env: [{ id: 'a@1' }, { id: 'a@2' }] } }, 'train.env.1.id'],
  [
    'two evaluations of one name',
    {
      eval: {
        env: [
          { id: 'a', name: 'x' },
          { id: 'b', name: 'x' },
        ],
      },
    },
    'eval.env.1.name',
  ],
  ['two names of one file', { train: { env: [{ id: 'org/a' }, { id: 'x', name: 'org--a' }] } }, 'train.env.1.name'],
  ['two files of one name', { train: { env: [{ id: './x/a.mjs' }, { id: './y/a.mjs' }] } }, 'train.env.1.id'],
  ['a name with a slash', { eval: { env: [{ id: 'a', name: '../a' }] } }, 'eval.env.0.name'],
  ['a path that makes no name', { train: { env: [{ id: './.a.mjs' }] } }, 'train.env.0.id'],
  ['a reserved name', { train: { env: [{ id: 'a', name: 'all' }] } }, 'train.env.0.name'],
  ['a ratio that is missing', { train: { env: [{ id: 'a', ratio: 1 }, { id: 'b' }] } }, 'train.env.1.ratio'],
  ['a filter twice', { pre_batch_filters: [{ type: 'gibberish' }, { type: 'gibberish' }] }, 'pre_batch_filters.1.type'],
  ['a filter twice after the batch', { post_batch_filters: [{ type: 'repetition' }, { type: 'repetition' }] }, 'post_batch_filters.1.type'],
])('%s is one problem', (_, written, path) => {
  expect(pathsOf(resolve(written))).toEqual([path])
})

test('a vision model needs a renderer', () => {
  const config = resolve({ renderer: null })
  const student = { ...config.student, model: { ...config.student.model, vlm: {} } }
  expect(pathsOf({ ...config, student })).toEqual(['student.model.vlm'])
})

test('the defaults break no rule', () => {
  expect(pathsOf(resolve({}))).toEqual([])
})

test.each([0, -1, Number.NaN, 1e-9])('a training temperature of %d is refused by name', (temperature) => {
  const { error } = OrchestratorSchema.safeParse({ train: { sampling: { temperature } } })
  expect(error?.issues.map((issue) => issue.path.join('.'))).toEqual(['train.sampling.temperature'])
})

test.each([
  ['Qwen/Qwen3-0.6B', 'qwen3'],
  ['Qwen/Qwen3-VL-4B-Instruct', 'qwen3-vl'],
  ['Qwen/Qwen3.5-4B', 'qwen3.5'],
  ['zai-org/GLM-5-FP8', 'glm-5'],
  ['zai-org/GLM-5.1', 'glm-5.1'],
  ['PrimeIntellect/Qwen3-0.6B-Reverse-Text-SFT', undefined],
  ['deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B', undefined],
])('auto means for %s the renderer %s', (model, renderer) => {
  expect(rendererOf(model)).toBe(renderer)
})
