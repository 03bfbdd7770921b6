/**
 * Where the keys of a forward pass are: in the packed documents that are trained on, or in the pages of an engine.
 *
 * Shapes: T rows of this forward, S rows of all documents, H query heads, G key heads, D width of a head, R latent width, P rotary width, J heads of the
 * indexer, I their width, K keys that a query attends to at most.
 */
import type { ChosenKeys, LatentKeys, LatentQueries, Tensor } from '@trilithon/tensor'

/** What an indexer made of the rows. */
export interface IndexerRows {
  /** [T, J, I], rotated. */
  readonly queries: Tensor
  /** [T, I], rotated. */
  readonly keys: Tensor
  /** [T, J]: weight of each head. */
  readonly weights: Tensor
}

/**
 * One forward pass's view of the sequences. Layers call it with the rows that they computed and get what attention makes of them; they do not know
 * which of the two back-ends answers. Both give the same bits for a row.
 */
export interface ContextBackend {
  /** Rows that this forward computes. */
  readonly rows: number
  /** Position of each row in its document: i32 [T]. */
  readonly positions: Tensor
  /** The highest of them. */
  readonly lastPosition: number
  /** Grouped attention over the row itself and all earlier ones. q: [T, H, D], k and v: [T, G, D]; gives [T, H, D]. */
  attend(layer: number, q: Tensor, k: Tensor, v: Tensor, scale: number): Tensor
  /** The K keys of each row that the indexer scores best. */
  choose(layer: number, indexer: IndexerRows, topK: number): ChosenKeys
  /** Latent attention over chosen keys, or all: [T, H, R]. */
  attendLatent(layer: number, q: LatentQueries, keys: LatentKeys, choice: ChosenKeys | null, scale: number): Tensor
  /**
   * Divergence of the indexer's weights from those of attention over the same keys, summed over rows: one element. Gradients reach the indexer alone.
   * For training: an engine refuses it.
   */
  indexLoss(layer: number, indexer: IndexerRows, q: LatentQueries, keys: LatentKeys, choice: ChosenKeys | null, scale: number): Tensor
}
