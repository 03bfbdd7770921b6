import { ExperimentalTable, LogTable, ModelTable, NumericsProfile, PluginPaths } from '@trilithon/core'
import { z } from 'zod'

const vllmOnly = 'An argument of vLLM; the embedded engine has no use for it.'
const port = z.int().min(1).max(65535)

const InferenceModelTable = z.strictObject({
  ...ModelTable.shape,
  dtype: z
    .enum(['auto', 'float16', 'bfloat16', 'float32'])
    .default('auto')
    .meta({ description: 'Storage type of the weights.', externalOnly: 'The numerics profile fixes the storage type.' }),
  max_model_len: z.int().min(1).nullable().default(null).describe('Tokens of the longest sequence; null takes that of the model.'),
  enforce_eager: z.boolean().default(false).meta({ description: 'Run without captured graphs.', externalOnly: vllmOnly }),
  chat_template: z
    .string()
    .nullable()
    .default(null)
    .describe('Chat template, as text or as the path of a file; null takes that of the model.'),
  tool_call_parser: z.string().nullable().default('auto').meta({
    description: 'Parser of tool calls on the chat route; "auto" goes by the name of the model, null has none.',
    externalOnly: 'The embedded engine serves the token route.',
  }),
  reasoning_parser: z.string().nullable().default('auto').meta({
    description: 'Parser of thinking on the chat route; "auto" goes by the name of the model, null has none.',
    externalOnly: 'The embedded engine serves the token route.',
  }),
  rope_scaling: z
    .union([z.string(), z.record(z.string(), z.json())])
    .nullable()
    .default(null)
    .meta({
      description: 'Stretching of the rotary positions; null does as the model says.',
      unavailable: 'Rotary positions follow the model.',
    }),
})

const InferenceLogTable = LogTable.extend({
  log_data: LogTable.shape.log_data.meta({ ...LogTable.shape.log_data.meta(), externalOnly: 'The engine trains on nothing.' }),
  vf_level: LogTable.shape.vf_level.meta({ ...LogTable.shape.vf_level.meta(), externalOnly: 'No environment runs beside the engine.' }),
})

export const InferenceSchema = z.strictObject({
  plugins: PluginPaths,
  numerics_profile: NumericsProfile,
  server: z
    .strictObject({
      host: z.string().min(1).nullable().default(null).describe('Address to listen on; null is this machine only.'),
      port: port.default(8000).describe('TCP port; the k-th engine process listens on `port` + k.'),
      api_key_var: z
        .string()
        .min(1)
        .default('VLLM_API_KEY')
        .describe('Variable of the environment that holds the key of requests; the same as `client.api_key_var` of those who ask.'),
      liveness_timeout_seconds: z.number().gt(0).default(30).describe('Seconds without progress after which the engine counts as dead.'),
    })
    .prefault({})
    .describe('The HTTP server.'),
  model: InferenceModelTable.prefault({}).describe('The model that is served.'),
  parallel: z
    .strictObject({
      tp: z
        .int()
        .min(1)
        .default(1)
        .meta({ description: 'Ranks that share every layer.', unavailable: 'The embedded engine does not split layers.' }),
      dp: z.int().min(1).default(1).describe('Engines side by side.'),
    })
    .prefault({})
    .describe('How the engines divide the work.'),
  log: InferenceLogTable.prefault({}).describe('Log lines.'),
  enable_prefix_caching: z.boolean().nullable().default(null).describe('Reuse the KV of equal beginnings; null does where the model can.'),
  gpu_memory_utilization: z
    .number()
    .gt(0)
    .max(1)
    .default(0.9)
    .meta({ description: 'Share of GPU memory for weights and KV.', externalOnly: 'The embedded engine sizes its KV in host memory.' }),
  api_server_count: z.int().min(0).default(1).meta({
    description: 'HTTP processes; 0 has none. At least one per local engine.',
    externalOnly: 'Every embedded engine has its own HTTP server.',
  }),
  data_parallel_size_local: z
    .int()
    .min(1)
    .nullable()
    .default(null)
    .meta({ description: 'Engines on this machine; null is all of them.', externalOnly: 'All embedded engines run on this machine.' }),
  data_parallel_rpc_port: port.default(13345).meta({ description: 'TCP port between data ranks.', externalOnly: vllmOnly }),
  seed: z.int().default(0).describe('Seed of sampling.'),
  enable_dbo: z.boolean().default(false).meta({ description: 'Overlap two halves of a batch.', externalOnly: vllmOnly }),
  weight_broadcast: z
    .discriminatedUnion('type', [z.strictObject({ type: z.literal('filesystem').describe('Files below the output folder.') })])
    .prefault({ type: 'filesystem' })
    .describe('How a new version of the weights arrives; the same in all roles.'),
  use_pd_kv_transfer: z.boolean().default(false).meta({
    description: 'Hand the KV of a prompt from one engine to another; set by a disaggregated deployment.',
    unavailable: 'Prefill and decode are not split yet.',
  }),
  enable_return_routed_experts: z.boolean().default(false).describe('Answer with the experts that each token went to.'),
  enable_fp32_lm_head: z
    .boolean()
    .default(true)
    .meta({ description: 'Compute the logits in fp32.', externalOnly: 'The numerics profile fixes the order of the logits.' }),
  vllm_extra: z
    .record(z.string(), z.json())
    .default({})
    .meta({ description: 'Further arguments of vLLM, as they are.', externalOnly: vllmOnly }),
  deployment: z
    .discriminatedUnion('type', [
      z.strictObject({
        type: z.literal('single_node').describe('One machine.'),
        gpus_per_node: z
          .int()
          .min(1)
          .default(8)
          .meta({ description: 'GPUs of a node.', externalOnly: 'The embedded engine computes on the cores of this machine.' }),
        backend_port: port.default(8100).meta({
          description: 'TCP port of the first engine behind a router.',
          externalOnly: 'On one node no router process is started.',
        }),
      }),
    ])
    .prefault({ type: 'single_node' })
    .describe('Where the engines run.'),
  output_dir: z.string().min(1).default('outputs').describe('Folder of everything the role writes.'),
  dry_run: z.boolean().default(false).describe('Check, write the resolved configuration, and end.'),
  experimental: ExperimentalTable,
})
export type InferenceConfiguration = z.output<typeof InferenceSchema>
