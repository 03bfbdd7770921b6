import type { ExpertExchange } from '@trilithon/tensor'
import type { LatentAttentionOptions } from '../layers/latent-attention.ts'

/** What the layers of a family are built with. */
export interface LayerOptions extends LatentAttentionOptions {
  readonly exchange: ExpertExchange
}
