import type { CheckProblem, ConfigurationNotice, IsGiven } from '@trilithon/core'
import { meshRules } from './mesh-rules.ts'
import { modelPluginKeys } from './plugin-keys.ts'
import type { SftConfiguration } from './sft-schema.ts'
import { deriveModel, deriveTokenizer } from './trainer-rules.ts'

/** Keys of the multi-node deployment, which the launcher's plugin owns. */
interface MultiNodeDeployment {
  readonly type: 'multi_node'
  readonly num_nodes: number
  readonly gpus_per_node: number
  readonly nodes_per_fsdp_group: number | null
}

function multiNode(config: SftConfiguration): MultiNodeDeployment | undefined {
  const deployment = config.deployment as { readonly type: string }
  return deployment.type === 'multi_node' ? (deployment as MultiNodeDeployment) : undefined
}

export function deriveSft(config: SftConfiguration, isGiven: IsGiven): SftConfiguration {
  const { model, optim } = deriveModel(config.model, config.optim)
  const nodes = multiNode(config)
  const follows = !isGiven('model.dp_replicate')
  const replicas = nodes?.nodes_per_fsdp_group && follows ? Math.trunc(nodes.num_nodes / nodes.nodes_per_fsdp_group) : undefined
  const head = typeof config.model.fused_lm_head_token_chunk_size === 'number' ? model.fused_lm_head_token_chunk_size : 'disabled'
  const { batch_size, seq_len, pack_function, micro_batch_size } = config.data
  return {
    ...config,
    model: { ...model, fused_lm_head_token_chunk_size: head, ...(replicas === undefined ? {} : { dp_replicate: replicas }) },
    optim,
    tokenizer: deriveTokenizer(config.tokenizer, model),
    ...(config.bench === null
      ? {}
      : {
          max_steps: 4,
          ckpt: null,
          data:
            config.data.type === 'fake'
              ? config.data
              : { type: 'fake', batch_size, seq_len, pack_function, micro_batch_size, length: 'fixed', input_ids: 'increasing' },
        }),
  }
}

/** Why written values of sft are changed or not used. */
export function* sftNotices(config: SftConfiguration): Iterable<ConfigurationNotice> {
  if (multiNode(config) !== undefined)
    yield { path: 'deployment.num_gpus', message: 'On several nodes all GPUs of a node train.', unused: true }
  yield { path: 'model.fused_lm_head_token_chunk_size', message: 'sft computes the loss from all logits.' }
  yield { path: 'model.seq_len', message: 'Supervised training packs rows of data.seq_len tokens.', unused: true }
  for (const path of ['renderer.tool_parser', 'renderer.reasoning_parser'])
    yield { path, message: 'Supervised training reads no answers of a model.', unused: true }
}

/** Rules of sft alone. */
export function* sftRules(config: SftConfiguration): Iterable<CheckProblem> {
  const keys = modelPluginKeys(config.model)
  const tables = [['data', config.data], ...(config.val ? [['val.data', config.val.data] as const] : [])] as const
  for (const [path, data] of tables) {
    if (data.batch_size % data.micro_batch_size !== 0)
      yield {
        message: `batch_size ${data.batch_size} is not a multiple of micro_batch_size ${data.micro_batch_size}`,
        path: `${path}.batch_size`,
        hint: 'Choose a multiple.',
      }
    if (keys.cp > 1) {
      if (data.pack_function !== 'cat')
        yield { message: `cp = ${keys.cp} needs pack_function "cat"`, path: `${path}.pack_function`, hint: 'Set pack_function = "cat".' }
      if (data.seq_len % keys.cp !== 0)
        yield { message: `seq_len ${data.seq_len} is not a multiple of cp ${keys.cp}`, path: `${path}.seq_len`, hint: 'Choose a multiple.' }
      if (data.micro_batch_size !== 1)
        yield {
          message: `cp = ${keys.cp} needs micro_batch_size 1, and it is ${data.micro_batch_size}`,
          path: `${path}.micro_batch_size`,
          hint: 'Set micro_batch_size = 1.',
        }
    }
    if (data.pack_function === 'stack' && data.seq_len % 256 !== 0)
      yield {
        message: `pack_function "stack" needs a seq_len that is a multiple of 256, and it is ${data.seq_len}`,
        path: `${path}.seq_len`,
        hint: 'Choose a multiple of 256, or pack_function = "cat".',
      }
    if (data.type === 'sft') {
      const lengths = [data.subsets, data.splits, data.probabilities].flatMap((list) => (list === null ? [] : [list.length]))
      if (new Set(lengths).size > 1)
        yield {
          message: `subsets, splits and probabilities have different lengths: ${lengths.join(', ')}`,
          path: `${path}.subsets`,
          hint: 'Give one split and one probability per subset.',
        }
    }
  }
  if (config.ckpt?.weights_only === true && config.ckpt.weights === null)
    yield {
      message: 'weights_only leaves the training state out of checkpoints and weights = "None" the weights: nothing would be written',
      path: 'ckpt.weights_only',
      hint: 'Keep [ckpt.weights], or remove [ckpt].',
    }
  if (config.renderer !== null && keys.vlm !== null)
    yield { message: 'A renderer and a vision model exclude each other in sft', path: 'renderer', hint: 'Remove one of them.' }
  if (typeof config.model.fused_lm_head_token_chunk_size === 'number')
    yield {
      message: 'sft computes the loss from all logits, and fused_lm_head_token_chunk_size asks for chunks',
      path: 'model.fused_lm_head_token_chunk_size',
      hint: 'Set it to "disabled".',
    }
  const nodes = multiNode(config)
  if (nodes === undefined) {
    const { num_gpus, gpus_per_node } = config.deployment
    if (num_gpus > gpus_per_node)
      yield {
        message: `num_gpus ${num_gpus} is above gpus_per_node ${gpus_per_node}`,
        path: 'deployment.num_gpus',
        hint: 'Lower num_gpus.',
      }
  } else {
    if (((config as { readonly slurm?: object | null }).slurm ?? null) === null)
      yield { message: 'A deployment over several nodes needs [slurm]', path: 'deployment.type', hint: 'Add a [slurm] table.' }
    if (nodes.nodes_per_fsdp_group !== null && nodes.num_nodes % nodes.nodes_per_fsdp_group !== 0)
      yield {
        message: `num_nodes ${nodes.num_nodes} is not a multiple of nodes_per_fsdp_group ${nodes.nodes_per_fsdp_group}`,
        path: 'deployment.nodes_per_fsdp_group',
        hint: 'Choose a divisor of num_nodes.',
      }
    else if (nodes.nodes_per_fsdp_group !== null && keys.dp_replicate !== nodes.num_nodes / nodes.nodes_per_fsdp_group)
      yield {
        message: `dp_replicate ${keys.dp_replicate} is not num_nodes / nodes_per_fsdp_group = ${nodes.num_nodes / nodes.nodes_per_fsdp_group}`,
        path: 'model.dp_replicate',
        hint: 'Remove dp_replicate: it follows.',
      }
  }
  const ranks = nodes === undefined ? config.deployment.num_gpus : nodes.num_nodes * nodes.gpus_per_node
  yield* meshRules(ranks, config.model, 'model')
}
