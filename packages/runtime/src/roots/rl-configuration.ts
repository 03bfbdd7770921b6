import type { InferenceConfiguration } from '@trilithon/inference/configuration'
import type { OrchestratorConfiguration } from '@trilithon/orchestrator/configuration'
import type { TrainerConfiguration } from '@trilithon/trainer/configuration'
import type { z } from 'zod'
import type { RlSchema } from './rl-schema.ts'

/** The launcher's keys and the resolved roots below; what `derive` and `rules` of `rl` see. */
export type RlConfiguration = z.output<typeof RlSchema> & {
  readonly trainer: TrainerConfiguration
  readonly orchestrator: OrchestratorConfiguration
  readonly inference: InferenceConfiguration | null
}

/** Keys of a deployment over several nodes, which the launcher's plugin owns. */
export interface MultiNodeKeys {
  readonly type: 'multi_node'
  readonly gpus_per_node: number
  readonly num_train_nodes: number
  readonly num_infer_nodes: number
  readonly num_infer_replicas: number
  readonly nodes_per_fsdp_group: number | null
}

/** The deployment where it is one over several nodes. */
export function multiNode(config: RlConfiguration): MultiNodeKeys | undefined {
  const deployment = config.deployment as { readonly type: string }
  return deployment.type === 'multi_node' ? (deployment as MultiNodeKeys) : undefined
}

/** Keys of plugins that the launcher reads; missing ones count as not used. */
export interface RlPluginKeys {
  readonly slurm: object | null
  readonly wandb: { readonly offline: boolean } | null
  readonly routerReplay: boolean
  readonly trainerLora: { readonly rank: number; readonly alpha: number } | null
  readonly policyLora: { readonly name: string | null; readonly rank: number | null; readonly alpha: number | null } | null
}

export function rlPluginKeys(config: RlConfiguration): RlPluginKeys {
  const own = config as { readonly slurm?: object | null; readonly wandb?: RlPluginKeys['wandb'] }
  const trainer = config.trainer as { readonly enable_router_replay?: boolean }
  const trained = config.trainer.model as { readonly lora?: RlPluginKeys['trainerLora'] }
  const served = config.orchestrator.student.model as { readonly lora?: RlPluginKeys['policyLora'] }
  return {
    slurm: own.slurm ?? null,
    wandb: own.wandb ?? null,
    routerReplay: trainer.enable_router_replay === true,
    trainerLora: trained.lora ?? null,
    policyLora: served.lora ?? null,
  }
}

/** Weight broadcast of a role with the keys that a plugin may own. */
export interface BroadcastKeys {
  readonly type: string
  readonly inference_world_size?: number
  readonly quantize_in_weight_transfer?: boolean
}
