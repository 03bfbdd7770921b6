import { multiNode, type RlConfiguration } from './rl-configuration.ts'

/** How many ranks train and generate, and how many GPUs (processes, where there are none) the deployment gives them. */
export interface WorldSizes {
  readonly train: number
  /** Ranks that the configuration of inference makes, over all nodes and replicas. */
  readonly inference: number
  /** GPUs that the deployment sets aside for inference. */
  readonly inferenceGpus: number
}

/** Counted from the resolved configuration; printed by the dry run. */
export function worldSizes(config: RlConfiguration): WorldSizes {
  const { inference } = config
  const nodes = multiNode(config)
  const ranks = inference === null ? 0 : inference.parallel.dp * inference.parallel.tp
  if (nodes === undefined) {
    return {
      train: config.deployment.num_train_gpus,
      inference: ranks,
      inferenceGpus: inference === null ? 0 : config.deployment.num_infer_gpus,
    }
  }
  const inferenceNodes = nodes.num_infer_nodes * nodes.num_infer_replicas
  const gpus = inferenceNodes * nodes.gpus_per_node
  const train = nodes.num_train_nodes * nodes.gpus_per_node
  if (inference === null) return { train, inference: 0, inferenceGpus: 0 }
  // With shared experts dp spans the nodes of a replica; otherwise every node has engines of its own.
  if (spansNodes(inference)) return { train, inference: ranks * nodes.num_infer_replicas, inferenceGpus: gpus }
  const local = inference.data_parallel_size_local ?? inference.parallel.dp
  return { train, inference: local * inference.parallel.tp * inferenceNodes, inferenceGpus: gpus }
}

/** Whether the data ranks of an engine are spread over the nodes of a replica. */
export function spansNodes(inference: NonNullable<RlConfiguration['inference']>): boolean {
  const { enable_expert_parallel, deployment } = inference as { enable_expert_parallel?: boolean; deployment: { type: string } }
  return enable_expert_parallel === true && deployment.type !== 'disaggregated'
}
