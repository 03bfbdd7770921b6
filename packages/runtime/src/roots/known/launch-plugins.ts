import { z } from 'zod'
import { claimAll, type KnownPluginSource } from './known-plugin.ts'

const port = z.int().min(1).max(65535)
const text = (meaning: string) => z.string().min(1).nullable().default(null).describe(meaning)
const gpusPerNode = z.int().min(1).default(8).describe('GPUs of a node.')

const SlurmTable = z.strictObject({
  job_name: z.string().min(1).default('prime-rl').describe('Name of the job.'),
  project_dir: z.string().min(1).default('.').describe('Folder that the job starts in.'),
  template_path: text('Template of the job script; null takes ours.'),
  partition: z.string().min(1).default('cluster').describe('Partition that the job runs in.'),
  nodelist: text('Nodes to use, separated by commas; null takes any.'),
  exclude: text('Nodes to leave out, separated by commas; null leaves out none.'),
  account: text('Account that pays; null is that of the user.'),
  time: text('Longest run time as Slurm writes it; null is that of the partition.'),
  pre_run_command: text('Shell command that runs first on every node; null runs none.'),
  cleanup_grace_period: z.int().min(0).default(3600).describe('Seconds between a failure and the end of the other processes.'),
})

const wandbKeys = {
  project: z.string().min(1).default('prime-rl').describe('Project on Weights & Biases.'),
  entity: text('Team or user; null is that of the login.'),
  name: text('Name of the run; null leaves it to the service.'),
  group: text('Group of runs; null has none.'),
  tags: z.array(z.string()).nullable().default(null).describe('Tags of the run; null has none.'),
  offline: z.boolean().default(false).describe('Write to disk instead of sending.'),
}

const ExtrasTable = z
  .strictObject({
    samples: z.boolean().default(true).describe('Send prompts and answers.'),
    distributions: z.boolean().default(true).describe('Send histograms of rewards and advantages.'),
    interval: z.int().min(1).default(10).describe('Steps between two of them.'),
    sample_ratio: z.number().min(0).max(1).nullable().default(null).describe('Share of rollouts that is sent; null sends all.'),
  })
  .nullable()
  .prefault({})
  .describe('What is sent besides metrics; null sends nothing more.')

const monitored = 'Send metrics to Weights & Biases; null does not.'
const nodesPerGroup = z.int().min(1).nullable().default(null).describe('Nodes that share one copy of the model; null is all of them.')
const backendPort = port.default(8100).describe('TCP port of the first engine behind a router.')
const overrides = z.record(z.string(), z.json()).default({})
const variables = z.record(z.string(), z.string()).default({})

/** Packages that start processes on several machines, and those that watch them. */
export const launchPlugins: readonly KnownPluginSource[] = [
  {
    package: '@trilithon/slurm',
    seam: 'launcher',
    built: false,
    claims: [
      ...claimAll(
        ['rl', 'sft', 'inference'],
        z.strictObject({ slurm: SlurmTable.nullable().default(null).describe('Run as a Slurm job; null runs here.') }),
      ),
      {
        at: 'rl.deployment',
        type: 'multi_node',
        keys: z.strictObject({
          gpus_per_node: gpusPerNode,
          num_train_nodes: z.int().min(1).describe('Nodes that train.'),
          num_infer_nodes: z.int().min(0).describe('Nodes of each inference replica; 0 starts no inference.'),
          num_infer_replicas: z.int().min(1).default(1).describe('Inference replicas.'),
          nodes_per_fsdp_group: nodesPerGroup,
          orchestrator_on_inference: z.boolean().default(false).describe('Run the orchestrator on the last inference node.'),
        }),
      },
      {
        at: 'sft.deployment',
        type: 'multi_node',
        keys: z.strictObject({
          gpus_per_node: gpusPerNode,
          num_nodes: z.int().min(1).default(2).describe('Nodes that train.'),
          nodes_per_fsdp_group: nodesPerGroup,
          num_gpus: z
            .int()
            .min(1)
            .nullable()
            .default(null)
            .describe('Not used: all GPUs of a node train. Accepted, because a single node has it.'),
        }),
      },
      {
        at: 'inference.deployment',
        type: 'multi_node',
        keys: z.strictObject({
          gpus_per_node: gpusPerNode,
          backend_port: backendPort,
          num_nodes: z.int().min(1).default(2).describe('Nodes, each with engines of its own.'),
        }),
      },
      {
        at: 'inference.deployment',
        type: 'disaggregated',
        keys: z.strictObject({
          gpus_per_node: gpusPerNode,
          backend_port: backendPort,
          num_prefill_nodes: z.int().min(1).default(1).describe('Nodes that compute prompts.'),
          num_decode_nodes: z.int().min(1).default(1).describe('Nodes that generate.'),
          num_prefill_replicas: z.int().min(1).default(1).describe('Engines that the prefill nodes are divided into.'),
          num_decode_replicas: z.int().min(1).default(1).describe('Engines that the decode nodes are divided into.'),
          prefill_port: port.default(8100).describe('TCP port of the prefill engines.'),
          decode_port: port.default(8200).describe('TCP port of the decode engines.'),
          prefill_env_overrides: variables.describe('Variables of the environment on prefill nodes.'),
          decode_env_overrides: variables.describe('Variables of the environment on decode nodes.'),
          prefill_vllm_overrides: overrides.describe('Arguments of vLLM on prefill nodes, over `vllm_extra`.'),
          decode_vllm_overrides: overrides.describe('Arguments of vLLM on decode nodes, over `vllm_extra`.'),
        }),
      },
    ],
  },
  {
    package: '@trilithon/wandb',
    seam: 'monitor',
    built: false,
    claims: [
      ...claimAll(
        ['rl', 'trainer', 'sft'],
        z.strictObject({ wandb: z.strictObject(wandbKeys).nullable().default(null).describe(monitored) }),
      ),
      {
        at: 'orchestrator',
        keys: z.strictObject({
          wandb: z
            .strictObject({ ...wandbKeys, log_extras: ExtrasTable })
            .nullable()
            .default(null)
            .describe(monitored),
        }),
      },
    ],
  },
  {
    package: '@trilithon/prime-monitor',
    seam: 'monitor',
    built: false,
    claims: [
      {
        at: 'orchestrator',
        keys: z.strictObject({
          prime_monitor: z
            .strictObject({
              base_url: z.string().min(1).default('https://api.primeintellect.ai/api/v1/rft').describe('URL of the service.'),
              api_key_var: z.string().min(1).default('PRIME_API_KEY').describe('Variable of the environment that holds the key.'),
              log_extras: ExtrasTable,
              run_name: text('Name of the run; null is that on Weights & Biases.'),
              team_id: text('Team that the run belongs to; null is that of the key.'),
              frontend_url: text('URL of the pages that show the run; null is that of the service.'),
            })
            .nullable()
            .default(null)
            .describe('Send metrics to the Prime Intellect platform; null does not.'),
        }),
      },
    ],
  },
  {
    package: '@trilithon/prometheus',
    seam: 'monitor',
    built: false,
    claims: [
      {
        at: 'trainer',
        keys: z.strictObject({
          metrics_server: z
            .strictObject({
              port: port.default(8000).describe('TCP port of the server.'),
              host: z.string().min(1).default('0.0.0.0').describe('Address to listen on.'),
            })
            .nullable()
            .default(null)
            .describe('Serve metrics and health over HTTP; null does not.'),
        }),
      },
    ],
  },
]
