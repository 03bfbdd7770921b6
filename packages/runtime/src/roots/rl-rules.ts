import type { CheckProblem, IsGiven } from '@trilithon/core'
import { inferencePluginKeys, loraRankOf } from '@trilithon/inference'
import { type BroadcastKeys, multiNode, type RlConfiguration, rlPluginKeys } from './rl-configuration.ts'
import { spansNodes, worldSizes } from './world-sizes.ts'

/** Rules between the roles of a run. */
export function* rlRules(config: RlConfiguration, isGiven: IsGiven): Iterable<CheckProblem> {
  yield* deploymentRules(config)
  yield* rankRules(config, isGiven)
  yield* broadcastRules(config)
  yield* agreementRules(config)
  yield* checkpointRules(config)
  yield* monitorRules(config)
  yield* loraRules(config)
  yield* clientRules(config)
}

export function* rlNotices(config: RlConfiguration): Iterable<string> {
  const { routerReplay, trainerLora } = rlPluginKeys(config)
  if (config.inference !== null) return
  if (routerReplay) yield 'trainer.enable_router_replay needs engines that answer with their experts (enable_return_routed_experts).'
  if (trainerLora !== null) yield 'trainer.model.lora needs engines that serve adapters (enable_lora, max_lora_rank).'
}

function* deploymentRules(config: RlConfiguration): Iterable<CheckProblem> {
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
}

/** Every GPU that is set aside for inference is a rank, and every rank has a GPU. */
function* rankRules(config: RlConfiguration, isGiven: IsGiven): Iterable<CheckProblem> {
  const { inference } = config
  if (inference === null) return
  const { tp, dp } = inference.parallel
  const nodes = multiNode(config)
  const keys = inferencePluginKeys(inference)
  if (nodes !== undefined && keys.deployment.type === 'disaggregated') {
    const wanted = (keys.deployment.num_prefill_nodes ?? 1) + (keys.deployment.num_decode_nodes ?? 1)
    if (nodes.num_infer_nodes !== wanted)
      yield {
        message: `num_infer_nodes is ${nodes.num_infer_nodes}, and prefill and decode nodes are ${wanted}`,
        path: 'deployment.num_infer_nodes',
        hint: `Set num_infer_nodes = ${wanted}.`,
      }
    return
  }
  const { inference: ranks, inferenceGpus: gpus } = worldSizes(config)
  if (nodes === undefined) {
    if (gpus % tp !== 0)
      yield { message: `num_infer_gpus ${gpus} is not a multiple of tp ${tp}`, path: 'inference.parallel.tp', hint: 'Choose a divisor.' }
    else if (ranks !== gpus)
      yield {
        message: `inference has dp ${dp} x tp ${tp} = ${ranks} ranks, and num_infer_gpus is ${gpus}`,
        path: isGiven('inference.parallel.dp') ? 'inference.parallel.dp' : 'deployment.num_infer_gpus',
        hint: `Set deployment.num_infer_gpus = ${ranks}, or remove inference.parallel.dp.`,
      }
    return
  }
  if (nodes.gpus_per_node % tp !== 0) {
    yield {
      message: `gpus_per_node ${nodes.gpus_per_node} is not a multiple of tp ${tp}`,
      path: 'inference.parallel.tp',
      hint: 'Choose a divisor.',
    }
    return
  }
  const local = nodes.gpus_per_node / tp
  const written = inference.data_parallel_size_local ?? local
  if (written !== local)
    yield {
      message: `data_parallel_size_local ${written} is not gpus_per_node / tp = ${local}`,
      path: 'inference.data_parallel_size_local',
      hint: 'Remove data_parallel_size_local.',
    }
  // Engines that do not share experts are counted per node or over all nodes of a replica; those that do, only over all nodes.
  const whole = local * nodes.num_infer_nodes
  if (dp !== whole && (dp !== local || spansNodes(inference)))
    yield {
      message: `inference has dp ${dp} x tp ${tp} = ${dp * tp} ranks for ${whole * tp} GPUs of a replica (${gpus} in all)`,
      path: 'inference.parallel.dp',
      hint: `Set inference.parallel.dp = ${whole}.`,
    }
}

function* broadcastRules(config: RlConfiguration): Iterable<CheckProblem> {
  const { trainer, orchestrator, inference } = config
  const typeOf = (role: { readonly weight_broadcast: { readonly type: string } }) => role.weight_broadcast.type
  const types = [typeOf(trainer), typeOf(orchestrator), ...(inference === null ? [] : [typeOf(inference)])]
  if (new Set(types).size > 1)
    yield {
      message: `weight_broadcast.type differs: trainer "${types[0]}", orchestrator "${types[1]}"${types[2] === undefined ? '' : `, inference "${types[2]}"`}`,
      path: 'trainer.weight_broadcast.type',
      hint: 'Set it once, in [weight_broadcast].',
    }
  const published = trainer.weight_broadcast as BroadcastKeys
  if (published.type === 'nccl' && multiNode(config) === undefined) {
    const gpus = config.deployment.num_train_gpus + config.deployment.num_infer_gpus
    if (gpus < 2)
      yield { message: `nccl needs two GPUs, and there are ${gpus}`, path: 'deployment.num_train_gpus', hint: 'Use the filesystem.' }
  }
  const quantized = published.quantize_in_weight_transfer === true || config.weight_broadcast?.quantize_in_weight_transfer === true
  if (quantized) {
    const path = 'weight_broadcast.quantize_in_weight_transfer'
    if (published.type !== 'nccl')
      yield { message: 'Quantised weights travel by nccl only', path, hint: 'Set weight_broadcast.type = "nccl".' }
    if (inference === null) yield { message: 'Quantised weights need [inference]', path, hint: 'Add an [inference] table.' }
    if (trainer.model.impl !== 'custom')
      yield {
        message: `Quantised weights need trainer.model.impl "custom", and it is "${trainer.model.impl}"`,
        path,
        hint: 'Set trainer.model.impl = "custom".',
      }
  }
  if (inference !== null && inferencePluginKeys(inference).enable_eplb && !(published.type === 'nccl' && quantized))
    yield {
      message: 'enable_eplb needs quantised weights by nccl',
      path: 'inference.enable_eplb',
      hint: 'Set weight_broadcast.type = "nccl" and quantize_in_weight_transfer = true.',
    }
}

function* agreementRules(config: RlConfiguration): Iterable<CheckProblem> {
  const { trainer, orchestrator, inference } = config
  const student = orchestrator.student.model.name
  const differ = (what: string, path: string, values: Record<string, unknown>, hint: string): CheckProblem => ({
    message: `${what} differs: ${Object.entries(values)
      .map(([role, value]) => `${role} ${JSON.stringify(value)}`)
      .join(', ')}`,
    path,
    hint,
  })
  const parent = orchestrator.output_dir.replace(/\/+[^/]*\/*$/, '')
  if (parent !== trainer.output_dir.replace(/\/+$/, ''))
    yield {
      message: `orchestrator.output_dir "${orchestrator.output_dir}" does not lie in trainer.output_dir "${trainer.output_dir}"`,
      path: 'orchestrator.output_dir',
      hint: 'Set output_dir once, at the top.',
    }
  if (inference !== null) {
    if (inference.model.name !== student)
      yield differ(
        'The model that is served',
        'inference.model.name',
        { inference: inference.model.name, orchestrator: student },
        'Set model.name once.',
      )
  } else if (trainer.model.name !== student && !trainer.model.name.startsWith('Jackmin108/'))
    yield differ(
      'The model',
      'orchestrator.student.model.name',
      { trainer: trainer.model.name, orchestrator: student },
      'Set model.name once.',
    )
  const templates: Record<string, unknown> = {
    trainer: trainer.tokenizer.chat_template,
    orchestrator: orchestrator.tokenizer.chat_template,
    ...(inference === null ? {} : { inference: inference.model.chat_template }),
  }
  if (new Set(Object.values(templates)).size > 1)
    yield differ('The chat template', 'trainer.tokenizer.chat_template', templates, 'Set tokenizer.chat_template once.')
  if (trainer.max_steps !== orchestrator.max_steps)
    yield differ(
      'max_steps',
      'orchestrator.max_steps',
      { trainer: trainer.max_steps, orchestrator: orchestrator.max_steps },
      'Set max_steps once.',
    )
  if (trainer.model.seq_len < orchestrator.seq_len)
    yield {
      message: `trainer.model.seq_len ${trainer.model.seq_len} is below orchestrator.seq_len ${orchestrator.seq_len}`,
      path: 'trainer.model.seq_len',
      hint: 'Set seq_len once, at the top.',
    }
  if ((trainer.bench !== null) !== orchestrator.bench)
    yield { message: 'Only one of trainer and orchestrator measures', path: 'bench', hint: 'Set bench = true at the top.' }
  const profiles = [config.numerics_profile, trainer.numerics_profile, ...(inference === null ? [] : [inference.numerics_profile])]
  if (trainer.numerics_profile !== (profiles[2] ?? trainer.numerics_profile))
    yield differ(
      'numerics_profile',
      'inference.numerics_profile',
      { trainer: trainer.numerics_profile, inference: profiles[2] },
      'Set numerics_profile once, at the top.',
    )
}

function* checkpointRules({ trainer, orchestrator }: RlConfiguration): Iterable<CheckProblem> {
  if ((trainer.ckpt === null) !== (orchestrator.ckpt === null)) {
    const [without, path] = trainer.ckpt === null ? ['trainer', 'trainer.ckpt'] : ['orchestrator', 'orchestrator.ckpt']
    yield { message: `The ${without} has no checkpoints, and the other has`, path, hint: 'Add [ckpt] at the top.' }
    return
  }
  if (trainer.ckpt === null || orchestrator.ckpt === null) return
  for (const key of ['interval', 'resume_step'] as const) {
    if (trainer.ckpt[key] !== orchestrator.ckpt[key])
      yield {
        message: `ckpt.${key} differs: trainer ${trainer.ckpt[key]}, orchestrator ${orchestrator.ckpt[key]}`,
        path: `orchestrator.ckpt.${key}`,
        hint: `Set ckpt.${key} once.`,
      }
  }
}

function* monitorRules(config: RlConfiguration): Iterable<CheckProblem> {
  if (rlPluginKeys(config).wandb?.offline === true)
    yield {
      message: 'The processes of a run write to one wandb run, which needs the network',
      path: 'wandb.offline',
      hint: 'Remove wandb.offline, or set it in [trainer.wandb] and [orchestrator.wandb].',
    }
  const projectOf = (role: object) => (role as { readonly wandb?: { readonly project: string } | null }).wandb?.project
  const [trainer, orchestrator] = [projectOf(config.trainer), projectOf(config.orchestrator)]
  if (trainer !== orchestrator)
    yield {
      message: `wandb differs: trainer ${trainer ?? 'none'}, orchestrator ${orchestrator ?? 'none'}`,
      path: trainer === undefined ? 'trainer.wandb' : 'orchestrator.wandb',
      hint: 'Set [wandb] once, at the top.',
    }
}

function* loraRules(config: RlConfiguration): Iterable<CheckProblem> {
  const { trainerLora, policyLora } = rlPluginKeys(config)
  if (trainerLora === null || policyLora === null) return
  if (config.inference !== null && loraRankOf(trainerLora.rank) === undefined)
    yield {
      message: `trainer.model.lora.rank ${trainerLora.rank} is more than any engine serves`,
      path: 'trainer.model.lora.rank',
      hint: 'Choose at most 512.',
    }
  for (const key of ['rank', 'alpha'] as const) {
    if (policyLora[key] !== trainerLora[key])
      yield {
        message: `lora.${key} differs: trainer ${trainerLora[key]}, orchestrator ${policyLora[key]}`,
        path: `orchestrator.student.model.lora.${key}`,
        hint: `Remove it: it follows trainer.model.lora.${key}.`,
      }
  }
}

/** On one machine the orchestrator must call the engines that this run starts. */
function* clientRules(config: RlConfiguration): Iterable<CheckProblem> {
  const { inference, orchestrator } = config
  if (inference === null || multiNode(config) !== undefined || rlPluginKeys(config).slurm !== null) return
  const { base_url, elastic } = orchestrator.student.client
  const [first] = base_url
  if (elastic !== null || first === undefined) return
  const port = portOf(first)
  if (port !== inference.server.port)
    yield {
      message: `student.client.base_url "${first}" has port ${port}, and inference.server.port is ${inference.server.port}`,
      path: 'orchestrator.student.client.base_url',
      hint: 'Remove base_url: it follows the server.',
    }
}

function portOf(url: string): number | undefined {
  if (!URL.canParse(url)) return undefined
  const { port, protocol } = new URL(url)
  return port !== '' ? Number(port) : protocol === 'https:' ? 443 : 80
}
