import { z } from 'zod'
import type { KnownPluginSource } from './known-plugin.ts'

const port = z.int().min(1).max(65535)

const ncclKeys = {
  host: z.string().min(1).default('localhost').describe('Host of the trainer.'),
  port: port.default(29501).describe('TCP port where the ranks meet.'),
  timeout: z.int().min(1).default(1200).describe('Seconds that a rank waits for the others.'),
  inference_world_size: z.int().min(1).default(1).describe('Ranks of inference; set from the deployment.'),
  quantize_in_weight_transfer: z.boolean().default(false).describe('Send the weights as the fp8 kernels read them.'),
}

const scorers = [
  'prefix-cache',
  'precise-prefix-cache',
  'queue',
  'kv-cache-utilization',
  'active-request',
  'load-aware',
  'running-requests-size',
  'token-load',
  'latency',
  'session-affinity',
  'lora-affinity',
]
/** Weights of llm-d's scorers; a name that is not among them is an error. */
const weights = (defaults: Record<string, number>) =>
  z
    .strictObject(
      Object.fromEntries(scorers.map((name) => [`${name}-scorer`, z.number().optional().describe(`Weight of the ${name} scorer.`)])),
    )
    .default(defaults)

/** A run over several nodes starts routers although each of its engines lies on one. */
const router = {
  at: 'inference.deployment.router',
  inactiveWhen: [
    { at: 'inference.deployment.type', is: 'single_node' },
    { at: 'rl.deployment.type', is: 'single_node' },
  ],
}

/** The same router as the orchestrator sees it: it chooses no engine itself. */
const asSeen = (type: string) => ({ at: 'orchestrator.router', type, keys: z.strictObject({}) })

/** Packages between trainer, orchestrator and engines. */
export const servingPlugins: readonly KnownPluginSource[] = [
  {
    package: '@trilithon/mooncake-kv',
    seam: 'kv-store',
    built: false,
    claims: [
      {
        at: 'inference.kv_cache_offload',
        type: 'mooncake',
        keys: z.strictObject({
          device_name: z.string().default('').describe('RDMA devices, separated by commas; empty finds them.'),
          cpu: z
            .strictObject({ num_bytes: z.int().min(1).describe('Bytes of host memory per node.') })
            .describe('The tier in host memory.'),
          disk: z
            .strictObject({ path: z.string().min(1).describe('Folder of the tier.') })
            .nullable()
            .default(null)
            .describe('The tier on disk; null has none.'),
        }),
      },
    ],
  },
  {
    package: '@trilithon/nccl',
    seam: 'weight-transport',
    built: false,
    claims: [
      { at: 'trainer.weight_broadcast', type: 'nccl', keys: z.strictObject(ncclKeys) },
      { at: 'orchestrator.weight_broadcast', type: 'nccl', keys: z.strictObject(ncclKeys) },
      { at: 'inference.weight_broadcast', type: 'nccl', keys: z.strictObject({}) },
    ],
  },
  {
    package: '@trilithon/vllm-router',
    seam: 'router',
    built: false,
    claims: [
      {
        ...router,
        type: 'vllm-router',
        keys: z.strictObject({
          port: port.default(8000).describe('TCP port that clients use.'),
          policy: z.string().min(1).default('consistent_hash').describe('How the router chooses an engine.'),
        }),
      },
      asSeen('vllm-router'),
    ],
  },
  {
    package: '@trilithon/llmd-router',
    seam: 'router',
    built: false,
    claims: [
      {
        ...router,
        type: 'llm-d',
        keys: z.strictObject({
          port: port.default(8000).describe('TCP port that clients use.'),
          scorers: weights({ 'prefix-cache-scorer': 3, 'active-request-scorer': 2 }).describe(
            'Weight of each scorer; a table given replaces the default.',
          ),
          prefill_scorer_overrides: weights({ 'queue-scorer': 2, 'kv-cache-utilization-scorer': 2 }).describe(
            'Weights that differ for prefill.',
          ),
          decode_scorer_overrides: weights({}).describe('Weights that differ for decode.'),
          non_cached_tokens: z.int().min(0).default(16).describe('Prompts with fewer new tokens are not prefilled elsewhere.'),
          decode_sidecar_port: port.default(8300).describe('TCP port of the process beside each decode engine.'),
        }),
      },
      asSeen('llm-d'),
    ],
  },
  {
    package: '@trilithon/dynamo-router',
    seam: 'router',
    built: false,
    claims: [
      { ...router, type: 'dynamo', keys: z.strictObject({ port: port.default(8000).describe('TCP port that clients use.') }) },
      asSeen('dynamo'),
    ],
  },
]
