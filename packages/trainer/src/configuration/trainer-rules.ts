import type { CheckProblem, ConfigurationNotice } from '@trilithon/core'
import type { z } from 'zod'
import type { TrainerModel } from './model-table.ts'
import type { OptimTable, SchedulerTable } from './optim-table.ts'
import { modelPluginKeys } from './plugin-keys.ts'
import type { TrainerConfiguration } from './trainer-schema.ts'

type Optim = z.output<typeof OptimTable>
type Scheduler = z.output<typeof SchedulerTable>

/** What the rules of `trainer` and `sft` have in common read. */
export interface ModelHolder {
  readonly scheduler: Scheduler
  readonly model: TrainerModel
  readonly optim: Optim
  readonly ckpt: { readonly weights: object | null } | null
  readonly trace_path: string | null
  readonly max_steps: number | null
  readonly bench: object | null
}

/** Values of `model` and `optim` that follow from others. */
export function deriveModel(model: TrainerModel, optim: Optim): { model: TrainerModel; optim: Optim } {
  return {
    model: {
      ...model,
      attn: model.attn === 'flash_attention_4' ? 'fa4' : model.attn,
      ac: model.ac ?? (model.ac_offloading === null ? null : { mode: 'full', freq: 1, targets: ['norm'] }),
      fused_lm_head_token_chunk_size: model.fused_lm_head_token_chunk_size === 'auto' ? 8192 : model.fused_lm_head_token_chunk_size,
    },
    optim: modelPluginKeys(model).ep_comm_backend === 'deepep' ? { ...optim, max_norm: null } : optim,
  }
}

/** What is said of a tokeniser by its model where nothing else is. */
export function deriveTokenizer<Tokenizer extends { name: string | null; trust_remote_code: boolean | null }>(
  tokenizer: Tokenizer,
  model: TrainerModel,
): Tokenizer {
  return {
    ...tokenizer,
    name: tokenizer.name ?? model.name,
    trust_remote_code: tokenizer.trust_remote_code ?? model.trust_remote_code,
  }
}

/** Rules of the model and its optimiser. */
export function* modelRules(config: ModelHolder): Iterable<CheckProblem> {
  const { model, optim } = config
  const keys = modelPluginKeys(model)
  const customOnly = (path: string, what: string) => ({
    message: `${what} needs model.impl "custom" or "auto", and it is "${model.impl}"`,
    path,
    hint: 'Set model.impl = "custom".',
  })

  if (model.trust_remote_code && model.impl === 'custom')
    yield {
      message: 'trust_remote_code has no meaning with model.impl "custom", which runs no code of the model',
      path: 'model.trust_remote_code',
      hint: 'Set model.impl = "hf", or remove trust_remote_code.',
    }
  if (model.attn === 'fa4' && model.impl !== 'custom')
    yield {
      message: `attn "fa4" needs model.impl "custom", and it is "${model.impl}"`,
      path: 'model.attn',
      hint: 'Set model.impl = "custom".',
    }
  if (keys.cp > 1) {
    if (!['flash_attention_2', 'flash_attention_3', 'fa4'].includes(model.attn))
      yield {
        message: `cp = ${keys.cp} needs attn "flash_attention_2", "flash_attention_3" or "fa4", and it is "${model.attn}"`,
        path: 'model.cp',
        hint: 'Set model.attn = "flash_attention_2".',
      }
    if (model.attn === 'flash_attention_3' && model.impl !== 'custom')
      yield {
        message: `cp = ${keys.cp} with attn "${model.attn}" needs model.impl "custom", and it is "${model.impl}"`,
        path: 'model.cp',
        hint: 'Set model.impl = "custom".',
      }
  }
  if (model.ac?.mode === 'selective' && model.ac.targets.length === 0)
    yield {
      message: 'Selective recomputation names no part of the layers',
      path: 'model.ac.targets',
      hint: 'Add a target, or set mode = "full".',
    }
  if (model.impl === 'hf') {
    if (model.ac?.mode === 'selective') yield customOnly('model.ac.mode', 'Selective recomputation')
    if (keys.fp8) yield customOnly('model.fp8', 'fp8')
    if (keys.ep > 1) yield customOnly('model.ep', `ep = ${keys.ep}`)
  }
  if (keys.fsdp_cpu_offload && keys.optim_cpu_offload)
    yield {
      message: 'fsdp_cpu_offload and optim_cpu_offload exclude each other',
      path: 'model.optim_cpu_offload',
      hint: 'Keep one of them: fsdp_cpu_offload already moves the optimiser.',
    }
  if (keys.ep_comm_backend === 'deepep' && keys.ep <= 1)
    yield { message: `ep_comm_backend "deepep" needs ep > 1, and it is ${keys.ep}`, path: 'model.ep_comm_backend', hint: 'Set model.ep.' }
  if (keys.ep > 1 && keys.ep % keys.cp !== 0)
    yield {
      message: `ep ${keys.ep} is not a multiple of cp ${keys.cp}: the ranks of a sequence share their experts`,
      path: 'model.ep',
      hint: 'Choose a multiple.',
    }
  if (keys.vlm !== null) {
    if (model.optimization_dtype !== 'bfloat16' || model.reduce_dtype !== 'bfloat16')
      yield {
        message: 'A vision model needs optimization_dtype and reduce_dtype "bfloat16"',
        path: model.optimization_dtype !== 'bfloat16' ? 'model.optimization_dtype' : 'model.reduce_dtype',
        hint: 'Set both to "bfloat16".',
      }
    if (!keys.vlm.freeze_vision_encoder && keys.lora !== null)
      yield {
        message: 'LoRA and a trainable vision encoder exclude each other',
        path: 'model.vlm.freeze_vision_encoder',
        hint: 'Set model.vlm.freeze_vision_encoder = true, or remove model.lora.',
      }
  }
  if (optim.type === 'muon' && keys.fsdp_cpu_offload)
    yield {
      message: 'The optimiser muon excludes fsdp_cpu_offload',
      path: 'model.fsdp_cpu_offload',
      hint: 'Use optim_cpu_offload instead.',
    }
  const weights = config.ckpt?.weights as { readonly save_adapter_separately?: boolean } | null | undefined
  if (weights?.save_adapter_separately === true && keys.lora === null)
    yield {
      message: 'save_adapter_separately needs LoRA',
      path: 'ckpt.weights.save_adapter_separately',
      hint: 'Add [model.lora], or remove save_adapter_separately.',
    }
  if (config.trace_path !== null && (config.max_steps === null || config.max_steps >= 10))
    yield {
      message: `trace_path needs max_steps below 10, and it is ${config.max_steps ?? 'not set'}`,
      path: 'trace_path',
      hint: 'Set max_steps to at most 9: traces grow fast.',
    }
}

/** A schedule that falls towards the end needs one, and room for its parts. */
export function* schedulerRules({ scheduler, max_steps: maxSteps }: Pick<ModelHolder, 'scheduler' | 'max_steps'>): Iterable<CheckProblem> {
  if (scheduler.type === 'constant') return
  const decay = scheduler.type === 'linear' ? scheduler.decay_steps : 1
  if (decay === 0) return
  if (maxSteps === null)
    yield {
      message: `scheduler "${scheduler.type}" falls towards the end of the run, and max_steps is not set`,
      path: 'scheduler.type',
      hint: scheduler.type === 'linear' ? 'Set max_steps, or scheduler.decay_steps = 0.' : 'Set max_steps.',
    }
  else if (scheduler.warmup_steps + decay > maxSteps)
    yield {
      message: `the parts of the schedule take ${scheduler.warmup_steps + decay} steps, and the run has ${maxSteps}`,
      path: 'scheduler.warmup_steps',
      hint: 'Shorten the warm-up or the decay.',
    }
}

/** Why written values of the model and its optimiser are changed. */
export function* modelNotices(config: ModelHolder): Iterable<ConfigurationNotice> {
  if (modelPluginKeys(config.model).ep_comm_backend === 'deepep')
    yield { path: 'optim.max_norm', message: 'Gradients are not clipped with ep_comm_backend "deepep".' }
  if (config.model.attn === 'fa4') yield { path: 'model.attn', message: '"flash_attention_4" is another name of "fa4".' }
  if (config.bench !== null) {
    const message = 'A measurement takes four steps on made-up data and writes no checkpoint.'
    for (const path of measuredPaths) yield { path, message }
  }
}

/** Keys that a measurement decides itself. */
const measuredPaths = [
  'max_steps',
  ...['output_dir', 'interval', 'weights_only', 'resume_step', 'keep_last', 'keep_interval'].map((key) => `ckpt.${key}`),
]

/** Rules of the RL trainer alone. */
export function* trainerRules(config: TrainerConfiguration): Iterable<CheckProblem> {
  const keys = modelPluginKeys(config.model)
  const replay = (config as { readonly enable_router_replay?: boolean }).enable_router_replay === true
  if (replay && config.model.impl === 'hf')
    yield {
      message: 'enable_router_replay needs model.impl "custom" or "auto", and it is "hf"',
      path: 'enable_router_replay',
      hint: 'Set model.impl = "custom".',
    }
  if (keys.optim_cpu_offload && config.max_concurrent_runs > 1)
    yield {
      message: `optim_cpu_offload serves one run, and max_concurrent_runs is ${config.max_concurrent_runs}`,
      path: 'model.optim_cpu_offload',
      hint: 'Set max_concurrent_runs = 1, or remove optim_cpu_offload.',
    }
  if (keys.lora !== null && (config.weight_broadcast.type as string) === 'nccl')
    yield {
      message: 'LoRA adapters are published as files, and weight_broadcast.type is "nccl"',
      path: 'weight_broadcast.type',
      hint: 'Set weight_broadcast.type = "filesystem".',
    }
}
