import type { TensorHandle } from '../tensor-types.ts';
export interface IndexerKlForwardArgs {
    /** [queries, index_heads, index_width], f32 or f64. */
    readonly indexQ: TensorHandle;
    /** [keys, index_width], f32 or f64. */
    readonly indexK: TensorHandle;
    /** [queries, index_heads], f32 or f64. */
    readonly indexWeights: TensorHandle;
    /** [queries, heads, latent_width], f32 or f64. */
    readonly q: TensorHandle;
    /** [queries, heads, rope_width], f32 or f64. */
    readonly qRope: TensorHandle;
    /** [keys, latent_width], f32 or f64. */
    readonly latent: TensorHandle;
    /** [keys, rope_width], f32 or f64. */
    readonly rope: TensorHandle;
    /** [queries, heads], f32 or f64. */
    readonly lse: TensorHandle;
    /** [documents + 1], i32. */
    readonly documentStarts: TensorHandle;
    /** [chunks + 1], i32. */
    readonly chunkStarts?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkDocuments?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkPositions?: TensorHandle | null | undefined;
    /** [queries, top_k], i32. */
    readonly indices?: TensorHandle | null | undefined;
    /** [queries], i32. */
    readonly counts?: TensorHandle | null | undefined;
    readonly indexScale: number;
    readonly scale: number;
    /** Written. [queries], f32 or f64. */
    readonly kl: TensorHandle;
    /** Written. [queries], f32 or f64. */
    readonly indexLse: TensorHandle;
    /** Written. [queries], f32 or f64. */
    readonly targetSum: TensorHandle;
}
/** KL(attention of all heads || softmax of index scores) per query, over the chosen keys or all. */
export declare function indexerKlForward(args: IndexerKlForwardArgs): void;
export interface IndexerKlBackwardArgs {
    /** [queries], f32 or f64. */
    readonly dKl: TensorHandle;
    /** [queries, index_heads, index_width], f32 or f64. */
    readonly indexQ: TensorHandle;
    /** [keys, index_width], f32 or f64. */
    readonly indexK: TensorHandle;
    /** [queries, index_heads], f32 or f64. */
    readonly indexWeights: TensorHandle;
    /** [queries, heads, latent_width], f32 or f64. */
    readonly q: TensorHandle;
    /** [queries, heads, rope_width], f32 or f64. */
    readonly qRope: TensorHandle;
    /** [keys, latent_width], f32 or f64. */
    readonly latent: TensorHandle;
    /** [keys, rope_width], f32 or f64. */
    readonly rope: TensorHandle;
    /** [queries, heads], f32 or f64. */
    readonly lse: TensorHandle;
    /** [documents + 1], i32. */
    readonly documentStarts: TensorHandle;
    /** [chunks + 1], i32. */
    readonly chunkStarts?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkDocuments?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkPositions?: TensorHandle | null | undefined;
    /** [queries, top_k], i32. */
    readonly indices?: TensorHandle | null | undefined;
    /** [queries], i32. */
    readonly counts?: TensorHandle | null | undefined;
    readonly indexScale: number;
    readonly scale: number;
    /** [queries], f32 or f64. */
    readonly indexLse: TensorHandle;
    /** [queries], f32 or f64. */
    readonly targetSum: TensorHandle;
    /** Written. [queries, index_heads, index_width], f32 or f64. */
    readonly dIndexQ: TensorHandle;
    /** Written. [keys, index_width], f32 or f64. */
    readonly dIndexK: TensorHandle;
    /** Written. [queries, index_heads], f32 or f64. */
    readonly dIndexWeights: TensorHandle;
}
/** Gradients of indexer-kl.forward by index_q, index_k and index_weights; the attention is constant. */
export declare function indexerKlBackward(args: IndexerKlBackwardArgs): void;
//# sourceMappingURL=indexer-kl.d.ts.map