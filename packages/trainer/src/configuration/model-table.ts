import { ModelTable } from '@trilithon/core'
import { z } from 'zod'

const oneAttention = 'The embedded trainer has one attention, in the order of the numerics profile.'
const profileDecides = 'The numerics profile fixes the storage type and the order of sums.'

/** How the model is built and run in training, by the RL trainer and by sft. */
export const TrainerModelTable = z.strictObject({
  ...ModelTable.shape,
  seq_len: z.int().min(1).default(2048).describe('Tokens of the longest sequence, and of one packed micro-batch row.'),
  attn: z
    .enum(['eager', 'sdpa', 'flash_attention_2', 'flash_attention_3', 'fa4', 'flash_attention_4'])
    .default('flash_attention_2')
    .meta({ description: 'Implementation of attention; "flash_attention_4" is another name of "fa4".', externalOnly: oneAttention }),
  compile: z
    .strictObject({ fullgraph: z.boolean().default(false).describe('Refuse models that cannot be compiled as one graph.') })
    .nullable()
    .default(null)
    .meta({
      description: 'Compile the layers; null leaves them as they are.',
      externalOnly: 'The native kernels are compiled beforehand.',
    }),
  ac: z
    .strictObject({
      mode: z.enum(['full', 'selective']).default('full').meta({
        description: 'Recompute whole layers, or the parts named by `targets`.',
        unavailable: 'Only whole layers are recomputed.',
      }),
      freq: z
        .int()
        .min(1)
        .default(1)
        .meta({ description: 'Every n-th layer is recomputed.', unavailable: 'Every layer is recomputed, or none.' }),
      targets: z
        .array(z.enum(['norm', 'attn_proj', 'mlp', 'mla_up_proj', 'routed_experts', 'linear_attn']))
        .default(['norm'])
        .meta({
          description: 'Parts recomputed in selective mode; "mlp" is that of dense layers.',
          unavailable: 'Only whole layers are recomputed.',
        }),
    })
    .nullable()
    .default(null)
    .describe('Recompute activations in the backward pass instead of keeping them; null keeps them.'),
  ac_offloading: z
    .strictObject({
      pin_memory: z.boolean().default(true).describe('Copy through page-locked memory.'),
      max_inflight_activations: z.int().min(1).default(5).describe('Activations on their way at a time.'),
    })
    .nullable()
    .default(null)
    .meta({
      description: 'Keep the activations at recomputation borders in host memory; turns `ac` on. null keeps them on the device.',
      externalOnly: 'The embedded trainer computes in host memory.',
    }),
  impl: z
    .enum(['hf', 'custom', 'auto'])
    .default('auto')
    .meta({ description: 'Implementation of the model.', externalOnly: 'The embedded trainer has one implementation of each family.' }),
  optimization_dtype: z
    .enum(['bfloat16', 'float32'])
    .default('float32')
    .meta({ description: 'Storage type of the weights that the optimiser updates.', externalOnly: profileDecides }),
  reduce_dtype: z
    .enum(['bfloat16', 'float32'])
    .default('float32')
    .meta({ description: 'Type in which gradients are reduced between ranks.', externalOnly: profileDecides }),
  moe_use_grouped_mm: z
    .boolean()
    .default(true)
    .meta({ description: 'Multiply all experts in one grouped call.', externalOnly: 'The native kernel is grouped always.' }),
  index_cache: z
    .strictObject({
      topk_freq: z.int().min(1).default(1).describe('Every n-th sparse layer computes its own index; the others take it over.'),
      topk_pattern: z
        .string()
        .regex(/^[FS]+$/, 'must be a word of F (own index) and S (shared index), one letter per layer')
        .nullable()
        .default(null)
        .describe('One letter per layer, F for its own index and S for a shared one; null follows `topk_freq`.'),
    })
    .nullable()
    .default(null)
    .meta({
      description: 'Share the indices of sparse attention between layers; null does as the model says.',
      unavailable: 'The indices are shared as config.json of the model says.',
    }),
  index_kl_weight: z
    .number()
    .min(0)
    .default(0)
    .describe('Weight of the KL loss that trains the indexer of sparse attention; 0 leaves the indexer frozen, as in RL.'),
  freeze_moe_router: z
    .boolean()
    .default(false)
    .meta({ description: 'Do not train the weights that choose the experts.', unavailable: 'Routers cannot be frozen yet.' }),
  debug: z
    .strictObject({
      num_layers: z
        .int()
        .min(1)
        .nullable()
        .default(null)
        .meta({ description: 'Build only that many layers; null builds all.', unavailable: 'A model is built whole.' }),
      random_init: z.boolean().default(false).describe('Start from random weights instead of those of the model.'),
      force_balanced_routing: z.boolean().default(false).meta({
        description: 'Give every expert equally many tokens, whatever the router says.',
        unavailable: 'The router decides always.',
      }),
    })
    .prefault({})
    .describe('For experiments with speed and memory; the results mean nothing.'),
  fused_lm_head_token_chunk_size: z
    .union([z.int().min(1), z.enum(['auto', 'disabled'])])
    .default('disabled')
    .meta({
      description: 'Tokens whose logits are computed at a time; "disabled" computes all at once, "auto" is 8192.',
      externalOnly: 'The native language-model head is fused always, in chunks that its order of sums fixes.',
    }),
})
export type TrainerModel = z.output<typeof TrainerModelTable>
