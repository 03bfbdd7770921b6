/** Keys of the deployments that the launcher's plugin owns. */
export interface DeploymentKeys {
  readonly type: string
  readonly gpus_per_node: number
  readonly num_nodes?: number
  readonly num_prefill_nodes?: number
  readonly num_decode_nodes?: number
  readonly num_prefill_replicas?: number
  readonly num_decode_replicas?: number
  readonly router?: { readonly type: string } | null
}

/**
 * Keys that plugins own and that rules of inference read. The runtime puts them back into the resolved configuration before `derive` and `rules`;
 * where a plugin is unknown, its keys are missing and count as not used.
 */
export interface InferencePluginKeys {
  readonly enable_lora: boolean
  readonly max_lora_rank: number | null
  readonly enable_expert_parallel: boolean
  readonly enable_eplb: boolean
  readonly kv_cache_offload: { readonly type: string } | null
  readonly slurm: object | null
  readonly deployment: DeploymentKeys
}

const unused = {
  enable_lora: false,
  max_lora_rank: null,
  enable_expert_parallel: false,
  enable_eplb: false,
  kv_cache_offload: null,
  slurm: null,
}

/** The plugin keys of a resolved configuration. */
export function inferencePluginKeys(config: { readonly deployment: DeploymentKeys }): InferencePluginKeys {
  return { ...unused, ...config }
}
