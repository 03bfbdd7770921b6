import { multiNode, type RlConfiguration } from './rl-configuration.ts'

/** How many ranks train and generate, and how many GPUs (processes, where there are none) the deployment gives them. */
export interface WorldSizes {
  readonly train: number
  /** Ranks that the configuration of inference makes: dp x tp on each independent group of nodes. */
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
  // With shared experts dp spans the nodes of a replica; otherwise every node is a group of its own.
  const expertParallel = inference !== null && spansNodes(inference)
  return {
    train: nodes.num_train_nodes * nodes.gpus_per_node,
    inference: ranks * (expertParallel ? nodes.num_infer_replicas : inferenceNodes),
    inferenceGpus: inference === null ? 0 : inferenceNodes * nodes.gpus_per_node,
  }
}

/** Whether the data ranks of an engine are spread over the nodes of a replica. */
export function spansNodes(inference: NonNullable<RlConfiguration['inference']>): boolean {
  const { enable_expert_parallel, deployment } = inference as { enable_expert_parallel?: boolean; deployment: { type: string } }
  return enable_expert_parallel === true && deployment.type !== 'disaggregated'
}
