import { ExperimentalTable, LogTable, NumericsProfile, PluginPaths, RolloutTransport, TokenizerTable } from '@trilithon/core'
import { z } from 'zod'

const shared = (meaning: string) => `${meaning} Shared: taken over by the roles that have it.`
const text = z.string().min(1).nullable().default(null)

/** The launcher's own keys; `trainer`, `orchestrator` and `inference` are roots of their own, mounted below it. */
export const RlSchema = z.strictObject({
  plugins: PluginPaths,
  numerics_profile: NumericsProfile,
  output_dir: z.string().min(1).default('outputs').describe(shared('Folder of everything the run writes.')),
  clean_output_dir: z.boolean().default(false).describe('Delete the output folder before the run.'),
  log: z
    .strictObject({
      level: LogTable.shape.level
        .unwrap()
        .nullable()
        .default(null)
        .describe(shared('Lowest level that is written; null leaves it to each role.')),
      json_logging: z.boolean().default(false).describe(shared('Write one JSON object per line instead of text.')),
    })
    .prefault({})
    .describe('Log lines.'),
  ckpt: z
    .strictObject({
      output_dir: text.describe(shared('Folder of the checkpoints; null is that of the run.')),
      interval: z.int().min(1).nullable().default(null).describe(shared('Steps between two checkpoints; null writes one at the end.')),
      resume_step: z.int().min(-1).nullable().default(null).describe(shared('Resume from that step; -1 is the last, null starts anew.')),
      keep_last: z.int().min(1).nullable().default(null).describe(shared('Keep that many of the newest checkpoints; null keeps all.')),
      keep_interval: z.int().min(1).nullable().default(null).describe(shared('Keep the checkpoints of every n-th step besides.')),
    })
    .nullable()
    .default(null)
    .describe(shared('Checkpoints; null leaves it to each role.')),
  model: z
    .strictObject({ name: text.describe(shared('Folder of the model, or its name on Hugging Face; null leaves it to each role.')) })
    .nullable()
    .default(null)
    .describe(shared('The model; null leaves it to each role.')),
  tokenizer: TokenizerTable.nullable().default(null).describe(shared('The tokeniser; null leaves it to each role.')),
  max_steps: z.int().min(1).nullable().default(null).describe(shared('Steps of the run; null leaves it to each role.')),
  seq_len: z.int().min(1).nullable().default(null).describe(shared('Tokens of the longest sequence; null leaves it to each role.')),
  weight_broadcast: z
    .strictObject({
      type: z.string().min(1).default('filesystem').describe(shared('How a new version of the weights reaches the engines.')),
      port: z.int().min(1).max(65535).default(29501).describe(shared('TCP port where the ranks of nccl meet.')),
      timeout: z.int().min(1).default(1200).describe(shared('Seconds that a rank of nccl waits for the others.')),
      quantize_in_weight_transfer: z.boolean().default(false).describe(shared('Send the weights as the fp8 kernels read them; nccl only.')),
    })
    .nullable()
    .default(null)
    .describe(shared('How a new version of the weights reaches the engines; null leaves it to each role.')),
  max_inference_restarts: z
    .int()
    .min(0)
    .default(3)
    .describe(
      'How often in a row an engine that died is started again; ten minutes of service begin the count anew, 0 ends the run with it.',
    ),
  rollout_transport: RolloutTransport.unwrap()
    .nullable()
    .default(null)
    .describe(shared('How batches travel from orchestrator to trainer; null leaves it to each role.')),
  bench: z.boolean().default(false).describe(shared('Measure: four steps on made-up data.')),
  deployment: z
    .discriminatedUnion('type', [
      z.strictObject({
        type: z.literal('single_node').describe('One machine.'),
        gpus_per_node: z.int().min(1).default(8).describe('GPUs of a node, or processes where there are none.'),
        num_train_gpus: z.int().min(1).default(1).describe('GPUs, or processes, that train.'),
        num_infer_gpus: z.int().min(0).default(1).describe('GPUs, or processes, that generate.'),
      }),
    ])
    .prefault({ type: 'single_node' })
    .describe('Where the roles run.'),
  dry_run: z.boolean().default(false).describe('Check, write the resolved configuration of each role, and end.'),
  experimental: ExperimentalTable,
})
