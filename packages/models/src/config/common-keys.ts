import { z } from 'zod'
import { RopeKeys } from './rope-config.ts'

const count = z.int().positive()

/** Keys that every family's `config.json` has. Unknown keys are left alone: the file belongs to somebody else. */
export const CommonKeys = RopeKeys.extend({
  model_type: z.string(),
  vocab_size: count,
  hidden_size: count,
  num_hidden_layers: count,
  num_attention_heads: count,
  intermediate_size: count,
  max_position_embeddings: count,
  rms_norm_eps: z.number().positive(),
  hidden_act: z.literal('silu').default('silu'),
  tie_word_embeddings: z.boolean().default(false),
  attention_bias: z.literal(false).default(false),
  initializer_range: z.number().positive().default(0.02),
  eos_token_id: z.union([z.int(), z.array(z.int())]).nullish(),
  pad_token_id: z.int().nullish(),
})
export type CommonKeys = z.infer<typeof CommonKeys>

/** What every normalised configuration has. Sizes in elements. */
export interface CommonConfig {
  readonly vocabSize: number
  readonly hiddenSize: number
  readonly layers: number
  readonly heads: number
  readonly intermediateSize: number
  readonly maxPositions: number
  readonly rmsNormEps: number
  readonly tiedEmbeddings: boolean
  readonly initializerRange: number
  /** Ids that end a completion. */
  readonly eosTokenIds: readonly number[]
  readonly padTokenId: number | null
}

export function commonConfig(keys: CommonKeys): CommonConfig {
  const eos = keys.eos_token_id ?? []
  return {
    vocabSize: keys.vocab_size,
    hiddenSize: keys.hidden_size,
    layers: keys.num_hidden_layers,
    heads: keys.num_attention_heads,
    intermediateSize: keys.intermediate_size,
    maxPositions: keys.max_position_embeddings,
    rmsNormEps: keys.rms_norm_eps,
    tiedEmbeddings: keys.tie_word_embeddings,
    initializerRange: keys.initializer_range,
    eosTokenIds: Array.isArray(eos) ? eos : [eos],
    padTokenId: keys.pad_token_id ?? null,
  }
}
