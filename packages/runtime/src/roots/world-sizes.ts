import type { DeploymentKeys } from '@trilithon/inference/configuration'
import { multiNode, type RlConfiguration } from './rl-configuration.ts'

/** How many ranks train and generate, and how many GPUs (processes, where there are none) the deployment gives them. */
export interface WorldSizes {
  readonly train: number
  /** Ranks that the configuration of inference makes, over all nodes and replicas. */
  readonly inference: number
  /** GPUs that the deployment sets aside for inference. */
  readonly inferenceGpus: number
  readonly trainNodes: number
  readonly inferenceNodes: number
}

/** Counted from the resolved configuration; printed by the dry run. A rule of `rl` holds inference ranks and GPUs equal. */
export function worldSizes(config: RlConfiguration): WorldSizes {
  const { inference } = config
  const nodes = multiNode(config)
  const ranks = inference === null ? 0 : inference.parallel.dp * inference.parallel.tp
  if (nodes === undefined) {
    return {
      train: config.deployment.num_train_gpus,
      inference: ranks,
      inferenceGpus: inference === null ? 0 : config.deployment.num_infer_gpus,
      trainNodes: 1,
      inferenceNodes: inference === null ? 0 : 1,
    }
  }
  const train = nodes.num_train_nodes * nodes.gpus_per_node
  const trainNodes = nodes.num_train_nodes
  if (inference === null) return { train, inference: 0, inferenceGpus: 0, trainNodes, inferenceNodes: 0 }
  const inferenceNodes = nodes.num_infer_nodes * nodes.num_infer_replicas
  const all = { train, inferenceGpus: inferenceNodes * nodes.gpus_per_node, trainNodes, inferenceNodes }
  // With shared experts dp spans the nodes of a replica; otherwise every node has engines of its own.
  if (spansNodes(inference)) return { ...all, inference: ranks * nodes.num_infer_replicas }
  const local = inference.data_parallel_size_local ?? inference.parallel.dp
  return { ...all, inference: local * inference.parallel.tp * inferenceNodes }
}

/** Whether the data ranks of an engine are spread over the nodes of a replica. */
export function spansNodes(inference: NonNullable<RlConfiguration['inference']>): boolean {
  const { enable_expert_parallel, deployment } = inference as { enable_expert_parallel?: boolean; deployment: { type: string } }
  return enable_expert_parallel === true && deployment.type !== 'disaggregated'
}

/** Ranks and nodes of an inference server alone: on several nodes every GPU is a rank. */
export function inferenceRanks({
  deployment,
  parallel,
}: {
  readonly deployment: DeploymentKeys
  readonly parallel: { readonly tp: number; readonly dp: number }
}): { ranks: number; nodes: number } {
  const nodes =
    deployment.type === 'disaggregated'
      ? (deployment.num_prefill_nodes ?? 1) + (deployment.num_decode_nodes ?? 1)
      : deployment.type === 'multi_node'
        ? (deployment.num_nodes ?? 1)
        : 1
  return { ranks: deployment.type === 'single_node' ? parallel.dp * parallel.tp : nodes * deployment.gpus_per_node, nodes }
}

/** Ranks and nodes of sft. */
export function sftRanks({
  deployment,
}: {
  readonly deployment: { readonly type: string; readonly gpus_per_node: number; readonly num_gpus?: number; readonly num_nodes?: number }
}): { ranks: number; nodes: number } {
  if (deployment.type === 'single_node') return { ranks: deployment.num_gpus ?? 1, nodes: 1 }
  const nodes = deployment.num_nodes ?? 1
  return { ranks: nodes * deployment.gpus_per_node, nodes }
}
