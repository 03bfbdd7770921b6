/**
 * Keys that plugins own and that rules of the trainer read. The runtime puts them back into the resolved configuration before `derive` and
 * `rules`; where a plugin is unknown, its keys are missing and count as not used.
 */
export interface ModelPluginKeys {
  readonly dp_replicate: number
  readonly cp: number
  readonly ep: number
  readonly ep_comm_backend: string
  readonly fp8: boolean
  readonly fsdp_cpu_offload: boolean
  readonly optim_cpu_offload: boolean
  readonly lora: object | null
  readonly vlm: { readonly freeze_vision_encoder: boolean } | null
}

const unused: ModelPluginKeys = {
  dp_replicate: 1,
  cp: 1,
  ep: 1,
  ep_comm_backend: 'torch',
  fp8: false,
  fsdp_cpu_offload: false,
  optim_cpu_offload: false,
  lora: null,
  vlm: null,
}

/** The plugin keys of a resolved `model` table. */
export function modelPluginKeys(model: object): ModelPluginKeys {
  return { ...unused, ...model }
}
