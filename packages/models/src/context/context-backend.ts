/**
 * Where the keys of a forward pass are: in the packed documents that are trained on, or in the pages of an engine.
 *
 * Shapes: T rows of this forward, S rows of all documents, H query heads, G key heads, D width of a head, R latent width, P rotary width, J heads of the
 * indexer, I their width, K keys that a query attends to at most.
 */
import type { ChosenKeys, IndexRows, LatentKeys, LatentQueries, Tensor } from '@trilithon/tensor'

export interface AttendedRows {
  /** [T, H, R]. */
  readonly out: Tensor
  /** Where an indexer is trained: its divergence from the attention paid, by row: [T]. */
  readonly indexLoss: Tensor | null
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
  /** The K keys of each row that the indexer scores best. `indexer` has q [T, J, I] and k [T, I], both rotated, and weights [T, J]. */
  choose(layer: number, indexer: IndexRows, topK: number): ChosenKeys
  /**
   * Latent attention over chosen keys, or all. With `trained` also the loss of that indexer over the same keys, whose gradients reach the indexer alone:
   * for training, an engine refuses it.
   */
  attendLatent(
    layer: number,
    q: LatentQueries,
    keys: LatentKeys,
    choice: ChosenKeys | null,
    scale: number,
    trained: IndexRows | null,
  ): AttendedRows
}

/** The published scale of index scores, on which no choice depends, but the indexer's loss does. */
export const indexScale = ({ q }: IndexRows): number => (q.dim(1) * q.dim(2)) ** -0.5
