import type { CheckProblem, IsGiven } from '@trilithon/core'
import { inferencePluginKeys, loraRankOf } from '@trilithon/inference/configuration'
import { type BroadcastKeys, multiNode, type RlConfiguration, rlPluginKeys } from './rl-configuration.ts'
import { deploymentRules, rankRules } from './rl-rank-rules.ts'
import { worldSizes } from './world-sizes.ts'

/** Rules between the roles of a run. */
export function* rlRules(config: RlConfiguration, isGiven: IsGiven): Iterable<CheckProblem> {
  yield* deploymentRules(config)
  yield* rankRules(config, isGiven)
  yield* broadcastRules(config)
  yield* rolloutRules(config)
  yield* agreementRules(config)
  yield* checkpointRules(config)
  yield* monitorRules(config)
  yield* loraRules(config)
  yield* clientRules(config)
  yield* samplingRules(config)
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
  // A group that waits for a rank too many waits for ever.
  const wanted = Math.max(1, worldSizes(config).inferenceGpus)
  for (const [role, { weight_broadcast }] of [
    ['trainer', trainer],
    ['orchestrator', orchestrator],
  ] as const) {
    const { type, inference_world_size: size } = weight_broadcast as BroadcastKeys
    if (type === 'nccl' && inference !== null && size !== wanted)
      yield {
        message: `${role}.weight_broadcast.inference_world_size is ${size}, and the deployment gives inference ${wanted} GPUs`,
        path: `${role}.weight_broadcast.inference_world_size`,
        hint: 'Remove inference_world_size: it follows the deployment.',
      }
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

function* rolloutRules({ trainer, orchestrator }: RlConfiguration): Iterable<CheckProblem> {
  const { rollout_transport: taken } = trainer
  const { rollout_transport: sent } = orchestrator
  const hint = 'Set it once, in [rollout_transport].'
  if (taken.type !== sent.type)
    yield {
      message: `rollout_transport.type differs: trainer "${taken.type}", orchestrator "${sent.type}"`,
      path: 'trainer.rollout_transport.type',
      hint,
    }
  else if (taken.type === 'zmq' && sent.type === 'zmq' && taken.port !== sent.port)
    yield {
      message: `rollout_transport.port differs: trainer ${taken.port}, orchestrator ${sent.port}`,
      path: 'trainer.rollout_transport.port',
      hint,
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
  if (trainer.clean_output_dir)
    yield {
      message: 'trainer.clean_output_dir would delete the folder that the other roles of the run write to',
      path: 'trainer.clean_output_dir',
      hint: 'Set clean_output_dir at the top instead.',
    }
  if (trainer.max_off_policy_steps < orchestrator.max_off_policy_steps)
    yield {
      message: `trainer.max_off_policy_steps is ${trainer.max_off_policy_steps}, and the orchestrator ships samples up to ${orchestrator.max_off_policy_steps}`,
      path: 'trainer.max_off_policy_steps',
      hint: 'Remove it: it follows orchestrator.max_off_policy_steps.',
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
  const { base_url, elastic, api_key_var } = orchestrator.student.client
  if (inference.server.api_key_var !== api_key_var)
    yield {
      message: `inference.server.api_key_var is ${inference.server.api_key_var}, and student.client.api_key_var is ${api_key_var}`,
      path: 'inference.server.api_key_var',
      hint: 'Remove one of them: it follows the other.',
    }
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

/** The loss compares with the log-probabilities of sampling, so they must be those of the distribution that was sampled from. */
function* samplingRules({ inference, orchestrator }: RlConfiguration): Iterable<CheckProblem> {
  const mode = inference?.vllm_extra.logprobs_mode
  if (mode !== undefined && mode !== 'processed_logprobs' && orchestrator.training_mode !== 'sft')
    yield {
      message: `vllm_extra.logprobs_mode is ${JSON.stringify(mode)}, and the loss needs log-probabilities after the temperature`,
      path: 'inference.vllm_extra.logprobs_mode',
      hint: 'Remove it: "processed_logprobs" is set.',
    }
}
