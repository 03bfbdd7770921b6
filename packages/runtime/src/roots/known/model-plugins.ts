import { z } from 'zod'
import { claimAll, type KnownPluginSource } from './known-plugin.ts'

const trainerModels = ['trainer.model', 'sft.model']
const policyModels = ['orchestrator.student.model', 'orchestrator.teacher.model']

const LoraTable = z.strictObject({
  rank: z.int().min(1).default(16).describe('Rank of the adapters.'),
  alpha: z.number().min(0).default(32).describe('Scale of the adapters, divided by the rank.'),
  dropout: z.number().min(0).max(1).default(0).describe('Share of inputs that the adapters drop.'),
  target_modules: z
    .array(z.string())
    .default(['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj', 'experts', 'fc1_latent_proj', 'fc2_latent_proj'])
    .describe('Names or patterns of the layers that get an adapter.'),
  modules_to_save: z.array(z.string()).default([]).describe('Names or patterns of layers that are trained whole.'),
})

const PolicyLoraTable = z.strictObject({
  name: z.string().min(1).nullable().default(null).describe('Name of the adapter; null follows from rank and alpha.'),
  rank: z.int().min(1).nullable().default(null).describe('Rank; null takes that of the trainer.'),
  alpha: z.number().min(0).nullable().default(null).describe('Scale; null takes that of the trainer.'),
})

const VisionTable = z.strictObject({
  vision_encoder_attr: z.string().min(1).describe('Dotted path of the vision encoder in the model.'),
  language_model_attr: z.string().min(1).describe('Dotted path of the language model in the model.'),
  freeze_vision_encoder: z.boolean().default(true).describe('Do not train the vision encoder.'),
})

/** Packages that change how a model is built, split or stored. */
export const modelPlugins: readonly KnownPluginSource[] = [
  {
    package: '@trilithon/fsdp',
    seam: 'parallelism',
    built: false,
    claims: claimAll(
      trainerModels,
      z.strictObject({
        dp_replicate: z.int().min(1).default(1).describe('Copies of the sharded model; gradients are summed over them.'),
        reshard_after_forward: z.boolean().default(true).describe('Give gathered parameters back after the forward pass.'),
        fsdp_cpu_offload: z.boolean().default(false).describe('Keep parameters, gradients and optimiser state in host memory.'),
        optim_cpu_offload: z.boolean().default(false).describe('Keep the optimiser state in host memory.'),
      }),
    ),
  },
  {
    package: '@trilithon/ep',
    seam: 'parallelism',
    built: false,
    claims: [
      ...claimAll(
        trainerModels,
        z.strictObject({
          ep: z.int().min(1).default(1).describe('Ranks that share the experts of a layer.'),
          ep_comm_backend: z.enum(['torch', 'deepep']).default('torch').describe('How tokens travel to experts.'),
          deepep_num_sms: z.int().min(1).default(20).describe('Streaming multiprocessors that DeepEP takes.'),
          deepep_token_chunk_size: z
            .int()
            .min(1)
            .nullable()
            .default(null)
            .describe('Tokens per exchange of DeepEP; null sends all at once.'),
        }),
      ),
      {
        at: 'inference',
        keys: z.strictObject({
          enable_expert_parallel: z.boolean().default(false).describe('Share the experts of a layer between the engines.'),
          all2all_backend: z
            .enum([
              'allgather_reducescatter',
              'deepep_high_throughput',
              'deepep_low_latency',
              'flashinfer_nvlink_one_sided',
              'flashinfer_nvlink_two_sided',
            ])
            .default('allgather_reducescatter')
            .describe('How tokens travel to experts.'),
          enable_eplb: z.boolean().default(false).describe('Copy crowded experts to other ranks.'),
        }),
      },
    ],
  },
  {
    package: '@trilithon/cp',
    seam: 'parallelism',
    built: false,
    claims: claimAll(
      trainerModels,
      z.strictObject({
        cp: z.int().min(1).default(1).describe('Ranks that share a sequence.'),
        cp_style: z.enum(['ring', 'ulysses']).default('ring').describe('Pass keys around a ring, or exchange heads for tokens.'),
      }),
    ),
  },
  {
    package: '@trilithon/fp8-deepgemm',
    seam: 'precision',
    built: false,
    claims: [
      ...claimAll(trainerModels, z.strictObject({ fp8: z.boolean().default(false).describe('Multiply in fp8, scaled by blocks.') })),
      {
        at: 'inference',
        keys: z.strictObject({ use_deep_gemm: z.boolean().default(false).describe('Multiply in fp8, scaled by blocks.') }),
      },
    ],
  },
  {
    package: '@trilithon/r3-replay',
    seam: 'replay',
    built: false,
    claims: [
      {
        at: 'trainer',
        keys: z.strictObject({
          enable_router_replay: z.boolean().default(false).describe('Train each token on the experts that it went to when it was sampled.'),
        }),
      },
    ],
  },
  {
    package: '@trilithon/lora',
    built: false,
    claims: [
      ...claimAll(
        trainerModels,
        z.strictObject({ lora: LoraTable.nullable().default(null).describe('Train low-rank adapters; null trains the weights.') }),
      ),
      ...claimAll(
        ['trainer.ckpt.weights', 'sft.ckpt.weights'],
        z.strictObject({ save_adapter_separately: z.boolean().default(false).describe('Write the adapters in files of their own.') }),
      ),
      ...claimAll(
        policyModels,
        z.strictObject({ lora: PolicyLoraTable.nullable().default(null).describe('Adapter of this run; null has none.') }),
      ),
      {
        at: 'inference',
        keys: z.strictObject({
          enable_lora: z.boolean().default(false).describe('Serve adapters.'),
          max_loras: z.int().min(1).default(8).describe('Adapters in use at a time.'),
          max_cpu_loras: z.int().min(1).default(100).describe('Adapters kept in host memory.'),
          max_lora_rank: z.int().min(1).nullable().default(null).describe('Largest rank; null is that of the engine.'),
          lora_target_modules: z.array(z.string()).nullable().default(null).describe('Layers that may have an adapter; null allows all.'),
        }),
      },
    ],
  },
  {
    package: '@trilithon/vision',
    built: false,
    claims: claimAll(
      [...trainerModels, ...policyModels, 'inference.model', 'rl.model'],
      z.strictObject({ vlm: VisionTable.nullable().default(null).describe('The model also reads pictures; null reads text only.') }),
    ),
  },
]
