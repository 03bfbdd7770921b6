import type { CheckProblem, IsGiven } from '@trilithon/core'
import { inferencePluginKeys } from '@trilithon/inference/configuration'
import { meshRules, modelPluginKeys } from '@trilithon/trainer/configuration'
import { type MultiNodeKeys, multiNode, type RlConfiguration, rlPluginKeys } from './rl-configuration.ts'
import { spansNodes, worldSizes } from './world-sizes.ts'

type Inference = NonNullable<RlConfiguration['inference']>

/** Rules of where the roles run. */
export function* deploymentRules(config: RlConfiguration): Iterable<CheckProblem> {
  const { inference, trainer, bench } = config
  const nodes = multiNode(config)
  if (nodes === undefined) {
    const { num_train_gpus, num_infer_gpus, gpus_per_node } = config.deployment
    if (num_train_gpus + num_infer_gpus > gpus_per_node)
      yield {
        message: `num_train_gpus ${num_train_gpus} and num_infer_gpus ${num_infer_gpus} are more than gpus_per_node ${gpus_per_node}`,
        path: 'deployment.gpus_per_node',
        hint: 'Lower one of the two, or raise gpus_per_node.',
      }
    return
  }
  if (rlPluginKeys(config).slurm === null)
    yield { message: 'A deployment over several nodes needs [slurm]', path: 'deployment.type', hint: 'Add a [slurm] table.' }
  if (nodes.num_infer_nodes > 0 && inference === null)
    yield {
      message: `num_infer_nodes is ${nodes.num_infer_nodes} and there is no [inference]`,
      path: 'deployment.num_infer_nodes',
      hint: 'Add an [inference] table, if only an empty one.',
    }
  if (nodes.num_infer_nodes === 0) {
    if (inference !== null)
      yield {
        message: 'num_infer_nodes is 0 and there is an [inference]',
        path: 'deployment.num_infer_nodes',
        hint: 'Remove one of the two.',
      }
    if (trainer.data.fake === null && !bench)
      yield {
        message: 'Without inference nodes there is nothing to train on',
        path: 'deployment.num_infer_nodes',
        hint: 'Add [trainer.data.fake], or set bench = true.',
      }
  }
  if (nodes.nodes_per_fsdp_group !== null && nodes.num_train_nodes % nodes.nodes_per_fsdp_group !== 0)
    yield {
      message: `num_train_nodes ${nodes.num_train_nodes} is not a multiple of nodes_per_fsdp_group ${nodes.nodes_per_fsdp_group}`,
      path: 'deployment.nodes_per_fsdp_group',
      hint: 'Choose a divisor of num_train_nodes.',
    }
  else if (nodes.nodes_per_fsdp_group !== null) {
    const copies = nodes.num_train_nodes / nodes.nodes_per_fsdp_group
    const { dp_replicate } = modelPluginKeys(trainer.model)
    if (dp_replicate !== copies)
      yield {
        message: `dp_replicate ${dp_replicate} is not num_train_nodes / nodes_per_fsdp_group = ${copies}`,
        path: 'trainer.model.dp_replicate',
        hint: 'Remove dp_replicate: it follows.',
      }
  }
}

/** Every GPU that is set aside is a rank, and every rank has a GPU. */
export function* rankRules(config: RlConfiguration, isGiven: IsGiven): Iterable<CheckProblem> {
  yield* meshRules(worldSizes(config).train, config.trainer.model, 'trainer.model')
  const { inference } = config
  if (inference === null) return
  const nodes = multiNode(config)
  if (nodes === undefined) yield* oneNodeRules(config, inference, isGiven)
  else if (inferencePluginKeys(inference).deployment.type === 'disaggregated') yield* disaggregatedRules(config, nodes, inference)
  else yield* nodesRules(config, nodes, inference)
}

function* oneNodeRules(config: RlConfiguration, inference: Inference, isGiven: IsGiven): Iterable<CheckProblem> {
  const { tp, dp } = inference.parallel
  const { type } = inferencePluginKeys(inference).deployment
  if (type !== 'single_node') {
    yield {
      message: `inference.deployment.type "${type}" spans nodes, and deployment.type is "single_node"`,
      path: 'inference.deployment.type',
      hint: 'Set deployment.type = "multi_node", or remove [inference.deployment].',
    }
    return
  }
  const { inference: ranks, inferenceGpus: gpus } = worldSizes(config)
  if (gpus % tp !== 0)
    yield { message: `num_infer_gpus ${gpus} is not a multiple of tp ${tp}`, path: 'inference.parallel.tp', hint: 'Choose a divisor.' }
  else if (ranks !== gpus)
    yield {
      message: `inference has dp ${dp} x tp ${tp} = ${ranks} ranks, and num_infer_gpus is ${gpus}`,
      path: isGiven('inference.parallel.dp') ? 'inference.parallel.dp' : 'deployment.num_infer_gpus',
      hint: `Set deployment.num_infer_gpus = ${ranks}, or remove inference.parallel.dp.`,
    }
  const local = inference.data_parallel_size_local ?? dp
  if (local !== dp)
    yield {
      message: `data_parallel_size_local ${local} leaves ${dp - local} of dp ${dp} to other nodes, and there are none`,
      path: 'inference.data_parallel_size_local',
      hint: 'Remove data_parallel_size_local.',
    }
}

function* disaggregatedRules(config: RlConfiguration, nodes: MultiNodeKeys, inference: Inference): Iterable<CheckProblem> {
  const { deployment } = inferencePluginKeys(inference)
  const wanted = (deployment.num_prefill_nodes ?? 1) + (deployment.num_decode_nodes ?? 1)
  if (nodes.num_infer_nodes !== wanted)
    yield {
      message: `num_infer_nodes is ${nodes.num_infer_nodes}, and prefill and decode nodes are ${wanted}`,
      path: 'deployment.num_infer_nodes',
      hint: `Set num_infer_nodes = ${wanted}.`,
    }
  if (deployment.gpus_per_node !== nodes.gpus_per_node) {
    yield {
      message: `gpus_per_node differs: inference.deployment ${deployment.gpus_per_node}, deployment ${nodes.gpus_per_node}`,
      path: 'inference.deployment.gpus_per_node',
      hint: `Set inference.deployment.gpus_per_node = ${nodes.gpus_per_node}.`,
    }
    return
  }
  yield* localRanksRule(config, nodes, inference)
}

/** Engines of one node take all of its GPUs. */
function* localRanksRule(config: RlConfiguration, nodes: MultiNodeKeys, inference: Inference): Iterable<CheckProblem> {
  const { tp } = inference.parallel
  if (nodes.gpus_per_node % tp !== 0) {
    yield {
      message: `gpus_per_node ${nodes.gpus_per_node} is not a multiple of tp ${tp}`,
      path: 'inference.parallel.tp',
      hint: 'Choose a divisor.',
    }
    return
  }
  const { inference: ranks, inferenceGpus: gpus } = worldSizes(config)
  const local = nodes.gpus_per_node / tp
  const written = inference.data_parallel_size_local ?? local
  if (written !== local)
    yield {
      message: `data_parallel_size_local ${written} is not gpus_per_node / tp = ${local}${spansNodes(inference) ? '' : `, and makes ${ranks} ranks for ${gpus} GPUs`}`,
      path: 'inference.data_parallel_size_local',
      hint: 'Remove data_parallel_size_local.',
    }
}

function* nodesRules(config: RlConfiguration, nodes: MultiNodeKeys, inference: Inference): Iterable<CheckProblem> {
  const { tp, dp } = inference.parallel
  const { deployment } = inferencePluginKeys(inference)
  if (deployment.type === 'multi_node' && deployment.num_nodes !== nodes.num_infer_nodes)
    yield {
      message: `num_infer_nodes is ${nodes.num_infer_nodes}, and inference.deployment.num_nodes is ${deployment.num_nodes}`,
      path: 'inference.deployment.num_nodes',
      hint: 'Remove [inference.deployment]: it follows [deployment].',
    }
  yield* localRanksRule(config, nodes, inference)
  if (nodes.gpus_per_node % tp !== 0) return
  const local = nodes.gpus_per_node / tp
  const gpus = worldSizes(config).inferenceGpus
  // Engines that do not share experts are counted per node or over all nodes of a replica; those that do, only over all nodes.
  const whole = local * nodes.num_infer_nodes
  if (dp !== whole && (dp !== local || spansNodes(inference)))
    yield {
      message: `inference has dp ${dp} x tp ${tp} = ${dp * tp} ranks for ${whole * tp} GPUs of a replica (${gpus} in all)`,
      path: 'inference.parallel.dp',
      hint: `Set inference.parallel.dp = ${whole}.`,
    }
}
