import type { CheckProblem, ConfigurationNotice, IsGiven } from '@trilithon/core'
import type { InferenceConfiguration } from './inference-schema.ts'
import { reasoningParserOf, toolCallParserOf } from './parser-of.ts'
import { inferencePluginKeys } from './plugin-keys.ts'

/** Ranks that vLLM serves adapters with; a rank is rounded up to the next of them. */
const loraRanks = [8, 16, 32, 64, 128, 256, 320, 512]

/** The rank that is served for adapters of `rank`; undefined where that is more than any engine serves. */
export function loraRankOf(rank: number): number | undefined {
  return loraRanks.find((allowed) => allowed >= rank)
}

/** HTTP processes: none without a server, one with LoRA, otherwise one per local engine where the number was not written. */
function apiServerCount(config: InferenceConfiguration, isGiven: IsGiven): number {
  if (config.vllm_extra.headless === true) return 0
  if (inferencePluginKeys(config).enable_lora) return 1
  const engines = config.data_parallel_size_local ?? config.parallel.dp
  return isGiven('api_server_count') ? config.api_server_count : Math.max(config.api_server_count, engines)
}

export function deriveInference(config: InferenceConfiguration, isGiven: IsGiven): InferenceConfiguration {
  const keys = inferencePluginKeys(config)
  const { model } = config
  let next: InferenceConfiguration = {
    ...config,
    model: {
      ...model,
      tool_call_parser: model.tool_call_parser === 'auto' ? toolCallParserOf(model.name) : model.tool_call_parser,
      reasoning_parser: model.reasoning_parser === 'auto' ? reasoningParserOf(model.name) : model.reasoning_parser,
    },
  }
  if (keys.kv_cache_offload !== null) next = { ...next, enable_prefix_caching: config.enable_prefix_caching ?? true }
  if (keys.deployment.type === 'disaggregated') {
    const ranks = Math.max(1, Math.trunc(keys.deployment.gpus_per_node / config.parallel.tp))
    const expertParallel = isGiven('enable_expert_parallel') ? keys.enable_expert_parallel : true
    next = {
      ...next,
      use_pd_kv_transfer: true,
      data_parallel_size_local: config.data_parallel_size_local ?? ranks,
      parallel: { ...config.parallel, dp: config.parallel.dp === 1 ? ranks : config.parallel.dp },
      api_server_count: config.api_server_count === 1 ? ranks : config.api_server_count,
      ...({ enable_expert_parallel: expertParallel } as object),
    }
  }
  const rank = keys.max_lora_rank
  return {
    ...next,
    api_server_count: apiServerCount(next, isGiven),
    ...(rank === null ? {} : { max_lora_rank: loraRankOf(rank) ?? rank }),
  }
}

export function* inferenceRules(config: InferenceConfiguration): Iterable<CheckProblem> {
  const keys = inferencePluginKeys(config)
  const { deployment } = keys
  if (deployment.type !== 'single_node' && keys.slurm === null)
    yield { message: `A deployment "${deployment.type}" needs [slurm]`, path: 'deployment.type', hint: 'Add a [slurm] table.' }
  if (deployment.type === 'disaggregated') {
    for (const side of ['prefill', 'decode'] as const) {
      const nodes = deployment[`num_${side}_nodes`] ?? 1
      const replicas = deployment[`num_${side}_replicas`] ?? 1
      if (nodes % replicas !== 0)
        yield {
          message: `num_${side}_nodes ${nodes} is not a multiple of num_${side}_replicas ${replicas}`,
          path: `deployment.num_${side}_replicas`,
          hint: `Choose a divisor of num_${side}_nodes.`,
        }
    }
  }
  if (keys.kv_cache_offload !== null && config.enable_prefix_caching === false)
    yield {
      message: 'kv_cache_offload keeps KV for equal beginnings, and enable_prefix_caching is false',
      path: 'enable_prefix_caching',
      hint: 'Remove enable_prefix_caching = false.',
    }
  if (keys.max_lora_rank !== null && loraRankOf(keys.max_lora_rank) === undefined)
    yield {
      message: `max_lora_rank ${keys.max_lora_rank} is more than any engine serves`,
      path: 'max_lora_rank',
      hint: `Choose at most ${loraRanks.at(-1)}.`,
    }
}

/** Combinations of inference keys that prime-rl 0.6.0 refuses and that work here; on one node no router is launched. */
export function* onlyHereTogether(config: InferenceConfiguration, onOneNode: boolean): Iterable<ConfigurationNotice> {
  const { deployment, kv_cache_offload, slurm } = inferencePluginKeys(config)
  if (config.enable_return_routed_experts && deployment.router?.type === 'llm-d' && !onOneNode)
    yield 'Routed experts with the llm-d router are refused by prime-rl 0.6.0; here experts travel as bytes beside the answer, past any router.'
  if (kv_cache_offload?.type === 'mooncake' && slurm === null)
    yield 'Mooncake without [slurm] is refused by prime-rl 0.6.0; here the pool does not depend on who starts it.'
}

/** Why written values are changed or not used. */
export function* inferenceNotices(config: InferenceConfiguration): Iterable<ConfigurationNotice> {
  yield* onlyHereTogether(config, inferencePluginKeys(config).deployment.type === 'single_node')
  if (config.vllm_extra.headless === true) yield { path: 'api_server_count', message: 'vllm_extra.headless has no HTTP server.' }
  else if (inferencePluginKeys(config).enable_lora)
    yield { path: 'api_server_count', message: 'Adapters are loaded through one HTTP process.' }
  else yield { path: 'api_server_count', message: 'Every engine has an HTTP process of its own.' }
  if (inferencePluginKeys(config).deployment.type === 'disaggregated') {
    const message = 'A disaggregated deployment hands KV from prefill to decode, and its engines take all GPUs of a node.'
    for (const path of ['use_pd_kv_transfer', 'parallel.dp']) yield { path, message }
  }
  yield { path: 'max_lora_rank', message: `Engines serve the ranks ${loraRanks.join(', ')}.` }
}
