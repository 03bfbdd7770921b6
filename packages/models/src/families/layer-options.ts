import type { ExpertExchange } from '../layers/expert-exchange.ts'
import type { LatentAttentionOptions } from '../layers/latent-attention.ts'

/** What the layers of a family are built with. */
export interface LayerOptions extends LatentAttentionOptions {
  readonly exchange: ExpertExchange
  /** Type of expert ids in the routed layout. */
  readonly idDtype: 'u8' | 'u16'
}
