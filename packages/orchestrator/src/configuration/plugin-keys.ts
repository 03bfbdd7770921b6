/**
 * Keys that plugins own and that the orchestrator's rules read. The runtime puts them back into the resolved configuration before `derive` and
 * `rules`; where a plugin is unknown, its keys are missing and count as not used.
 */
export interface OrchestratorPluginKeys {
  readonly wandb: { readonly name: string | null; readonly log_extras?: object | null } | null
  readonly prime_monitor: { readonly run_name: string | null; readonly log_extras?: object | null } | null
}

/** The plugin keys at the top of a resolved configuration. */
export function orchestratorPluginKeys(config: object): OrchestratorPluginKeys {
  return { wandb: null, prime_monitor: null, ...config }
}

/** Whether a resolved model table names a vision model. */
export function isVisionModel(model: object): boolean {
  return ((model as { readonly vlm?: object | null }).vlm ?? null) !== null
}
