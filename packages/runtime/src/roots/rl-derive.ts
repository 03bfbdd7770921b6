import type { IsGiven } from '@trilithon/core'
import { inferencePluginKeys, loraRankOf } from '@trilithon/inference/configuration'
import { modelPluginKeys } from '@trilithon/trainer/configuration'
import { type BroadcastKeys, type MultiNodeKeys, multiNode, type RlConfiguration, rlPluginKeys } from './rl-configuration.ts'
import { spansNodes, worldSizes } from './world-sizes.ts'

/** Values of the roles that follow from each other and from the deployment, in prime-rl's order. */
export function deriveRl(config: RlConfiguration, isGiven: IsGiven): RlConfiguration {
  const steps = [deriveBench, deriveLora, deriveReplay, deriveRanks, deriveBroadcast, deriveClient, deriveRecovery, deriveLag]
  return steps.reduce((current, step) => step(current, isGiven), config)
}

/** A measurement trains on as many made-up sequences as a batch would have. */
function deriveBench(config: RlConfiguration, isGiven: IsGiven): RlConfiguration {
  if (!config.bench || isGiven('trainer.data.fake.batch_size')) return config
  const batch_size = config.orchestrator.batch_size ?? 32
  const fake = { generate_samples: false, ...config.trainer.data.fake, batch_size }
  return { ...config, trainer: { ...config.trainer, data: { ...config.trainer.data, fake } } }
}

/** The policy's adapter follows that of the trainer, and inference serves it. */
function deriveLora(config: RlConfiguration): RlConfiguration {
  const { trainerLora, policyLora } = rlPluginKeys(config)
  if (trainerLora === null) return config
  const rank = policyLora?.rank ?? trainerLora.rank
  const alpha = policyLora?.alpha ?? trainerLora.alpha
  const lora = { name: policyLora?.name ?? `r${rank}-a${alpha}`, rank, alpha }
  const { orchestrator, inference } = config
  const student = { ...orchestrator.student, model: { ...orchestrator.student.model, lora } }
  const served = { enable_lora: true, max_lora_rank: loraRankOf(trainerLora.rank) ?? trainerLora.rank, api_server_count: 1 }
  return {
    ...config,
    orchestrator: { ...orchestrator, student },
    inference: inference && { ...inference, ...served },
  }
}

/** Replay needs the engine to answer with its experts. */
function deriveReplay(config: RlConfiguration): RlConfiguration {
  if (!rlPluginKeys(config).routerReplay || config.inference === null) return config
  return { ...config, inference: { ...config.inference, enable_return_routed_experts: true } }
}

function deriveRanks(config: RlConfiguration, isGiven: IsGiven): RlConfiguration {
  const nodes = multiNode(config)
  return nodes === undefined ? deriveOneNode(config, isGiven) : deriveNodes(config, nodes, isGiven)
}

function deriveOneNode(config: RlConfiguration, isGiven: IsGiven): RlConfiguration {
  const { trainer, orchestrator, inference } = config
  const { num_train_gpus, num_infer_gpus } = config.deployment
  const workers = Math.max(1, Math.trunc(num_train_gpus / modelPluginKeys(trainer.model).cp))
  const next = {
    ...config,
    orchestrator:
      num_train_gpus > 1 && !isGiven('orchestrator.num_train_workers') ? { ...orchestrator, num_train_workers: workers } : orchestrator,
  }
  if (inference === null) return next
  const { tp } = inference.parallel
  const fits = num_infer_gpus >= tp && num_infer_gpus % tp === 0
  const dp = isGiven('inference.parallel.dp') || !fits ? inference.parallel.dp : num_infer_gpus / tp
  const servers = inference.api_server_count
  const tooFew = servers !== 0 && servers < dp && !inferencePluginKeys(inference).enable_lora
  return { ...next, inference: { ...inference, parallel: { tp, dp }, api_server_count: tooFew ? dp : servers } }
}

function deriveNodes(config: RlConfiguration, nodes: MultiNodeKeys, isGiven: IsGiven): RlConfiguration {
  const { trainer, orchestrator, inference } = config
  const group = nodes.nodes_per_fsdp_group
  const follows = group !== null && !isGiven('trainer.model.dp_replicate')
  const replicas = follows ? { dp_replicate: Math.trunc(nodes.num_train_nodes / group) } : {}
  const workers = isGiven('orchestrator.num_train_workers') ? orchestrator.num_train_workers : nodes.num_train_nodes * nodes.gpus_per_node
  const next = {
    ...config,
    trainer: { ...trainer, model: { ...trainer.model, ...replicas } },
    orchestrator: { ...orchestrator, num_train_workers: workers },
  }
  if (inference === null) return next
  const ranks = Math.max(1, Math.trunc(nodes.gpus_per_node / inference.parallel.tp))
  const deployment = inferencePluginKeys(inference).deployment
  if (deployment.type === 'disaggregated') {
    const rolesOf = (role: 'prefill' | 'decode', count: number) => Array.from({ length: count * ranks }, () => role)
    const order = [...rolesOf('prefill', deployment.num_prefill_nodes ?? 1), ...rolesOf('decode', deployment.num_decode_nodes ?? 1)]
    const roles = Array.from({ length: nodes.num_infer_replicas }, () => order).flat()
    if (isGiven('orchestrator.inference_metrics_roles')) return next
    return { ...next, orchestrator: { ...next.orchestrator, inference_metrics_roles: roles } }
  }
  // One engine on one node has no data ranks to speak of.
  if (ranks === 1 && inference.parallel.dp === 1) return next
  const { api_server_count: servers, parallel } = inference
  const isFew = servers !== 0 && servers < ranks && !inferencePluginKeys(inference).enable_lora
  const isCounted = !isGiven('inference.api_server_count') && servers > ranks
  return {
    ...next,
    inference: {
      ...inference,
      parallel: { ...parallel, dp: parallel.dp === 1 && !spansNodes(inference) ? ranks : parallel.dp },
      data_parallel_size_local: inference.data_parallel_size_local ?? ranks,
      // HTTP processes are counted on each node, not over all of them.
      api_server_count: isFew || isCounted ? ranks : servers,
    },
  }
}

/** The ranks of nccl: every GPU of inference; on several nodes the trainer listens on all addresses. */
function deriveBroadcast(config: RlConfiguration, isGiven: IsGiven): RlConfiguration {
  const { trainer, orchestrator, inference } = config
  if (inference === null) return config
  const nodes = multiNode(config)
  const inference_world_size = Math.max(1, worldSizes(config).inferenceGpus)
  const sized = <Role extends { readonly weight_broadcast: object }>(name: string, role: Role): Role =>
    (role.weight_broadcast as BroadcastKeys).type !== 'nccl' || isGiven(`${name}.weight_broadcast.inference_world_size`)
      ? role
      : { ...role, weight_broadcast: { ...role.weight_broadcast, inference_world_size } }
  const listening =
    nodes !== undefined && (trainer.weight_broadcast as BroadcastKeys).type === 'nccl'
      ? { ...trainer, weight_broadcast: { ...trainer.weight_broadcast, ...{ host: '0.0.0.0' } } }
      : trainer
  return { ...config, trainer: sized('trainer', listening), orchestrator: sized('orchestrator', orchestrator) }
}

/** Where the orchestrator finds the engines that this run starts. */
function deriveClient(config: RlConfiguration, isGiven: IsGiven): RlConfiguration {
  const { orchestrator, inference } = config
  if (inference === null) return config
  const { client } = orchestrator.student
  const engines = multiNode(config) === undefined ? (inference.data_parallel_size_local ?? inference.parallel.dp) : 1
  const url = `http://${inference.server.host ?? 'localhost'}:${inference.server.port}/v1`
  const next = {
    ...client,
    dp_rank_count: isGiven('orchestrator.student.client.dp_rank_count') ? client.dp_rank_count : engines,
    base_url: isGiven('orchestrator.student.client.base_url') ? client.base_url : [url],
  }
  // One key for both sides, whichever of them names its variable.
  const follows = isGiven('inference.server.api_key_var') && !isGiven('orchestrator.student.client.api_key_var')
  const api_key_var = follows ? inference.server.api_key_var : client.api_key_var
  const server = { ...inference.server, api_key_var: isGiven('inference.server.api_key_var') ? inference.server.api_key_var : api_key_var }
  return {
    ...config,
    orchestrator: { ...orchestrator, student: { ...orchestrator.student, client: { ...next, api_key_var } } },
    inference: { ...inference, server },
  }
}

/** Engines that the launcher starts again have as long as they had at first. */
function deriveRecovery(config: RlConfiguration, isGiven: IsGiven): RlConfiguration {
  const { orchestrator, inference, max_inference_restarts: restarts } = config
  if (inference === null || restarts === 0 || multiNode(config) !== undefined) return config
  if (isGiven('orchestrator.student.client.recovery_timeout_seconds')) return config
  const { client } = orchestrator.student
  const next = { ...client, recovery_timeout_seconds: client.wait_for_ready_timeout }
  return { ...config, orchestrator: { ...orchestrator, student: { ...orchestrator.student, client: next } } }
}

/** The trainer checks the bound that the orchestrator keeps. */
function deriveLag(config: RlConfiguration, isGiven: IsGiven): RlConfiguration {
  if (isGiven('trainer.max_off_policy_steps')) return config
  return { ...config, trainer: { ...config.trainer, max_off_policy_steps: config.orchestrator.max_off_policy_steps } }
}
