import type { TensorHandle } from '../tensor-types.ts';
export interface DsaIndexerSelectArgs {
    /** [queries, index_heads, width], f32 or f64. */
    readonly q: TensorHandle;
    /** [keys, width], f32 or f64. */
    readonly k: TensorHandle;
    /** [queries, index_heads], f32 or f64. */
    readonly weights: TensorHandle;
    /** [documents + 1], i32. */
    readonly documentStarts: TensorHandle;
    /** [chunks + 1], i32. */
    readonly chunkStarts?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkDocuments?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkPositions?: TensorHandle | null | undefined;
    /** Written. [queries, top_k], i32. */
    readonly indices: TensorHandle;
    /** Written. [queries], i32. */
    readonly counts: TensorHandle;
    readonly scale: number;
}
/** Positions of the top_k keys of each query by index score, ascending; a tie goes to the lower position. */
export declare function dsaIndexerSelect(args: DsaIndexerSelectArgs): void;
export interface DsaIndexerSelectPagedArgs {
    /** [queries, index_heads, width], f32 or f64. */
    readonly q: TensorHandle;
    /** [pages, block_size, width], f32 or f64. */
    readonly kPages: TensorHandle;
    /** [queries, index_heads], f32 or f64. */
    readonly weights: TensorHandle;
    /** [sequences + 1], i32. */
    readonly queryStarts: TensorHandle;
    /** [sequences], i32. */
    readonly contextLengths: TensorHandle;
    /** [sequences, pages], i32. */
    readonly blockTable: TensorHandle;
    /** Written. [queries, top_k], i32. */
    readonly indices: TensorHandle;
    /** Written. [queries], i32. */
    readonly counts: TensorHandle;
    readonly scale: number;
}
/** dsa-indexer.select for the last queries of sequences whose keys lie in pages. */
export declare function dsaIndexerSelectPaged(args: DsaIndexerSelectPagedArgs): void;
export interface DsaIndexerScoresArgs {
    /** [queries, index_heads, width], f32 or f64. */
    readonly q: TensorHandle;
    /** [keys, width], f32 or f64. */
    readonly k: TensorHandle;
    /** [queries, index_heads], f32 or f64. */
    readonly weights: TensorHandle;
    /** [documents + 1], i32. */
    readonly documentStarts: TensorHandle;
    /** [chunks + 1], i32. */
    readonly chunkStarts?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkDocuments?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkPositions?: TensorHandle | null | undefined;
    /** [queries, top_k], i32. */
    readonly indices: TensorHandle;
    /** [queries], i32. */
    readonly counts: TensorHandle;
    /** Written. [queries, top_k], f32 or f64. */
    readonly scores: TensorHandle;
    readonly scale: number;
}
/** Index scores of given keys; 0 where a list has no entry. */
export declare function dsaIndexerScores(args: DsaIndexerScoresArgs): void;
export interface DsaIndexerScoresBackwardArgs {
    /** [queries, top_k], f32 or f64. */
    readonly dScores: TensorHandle;
    /** [queries, index_heads, width], f32 or f64. */
    readonly q: TensorHandle;
    /** [keys, width], f32 or f64. */
    readonly k: TensorHandle;
    /** [queries, index_heads], f32 or f64. */
    readonly weights: TensorHandle;
    /** [documents + 1], i32. */
    readonly documentStarts: TensorHandle;
    /** [chunks + 1], i32. */
    readonly chunkStarts?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkDocuments?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkPositions?: TensorHandle | null | undefined;
    /** [queries, top_k], i32. */
    readonly indices: TensorHandle;
    /** [queries], i32. */
    readonly counts: TensorHandle;
    /** Written. [queries, index_heads, width], f32 or f64. */
    readonly dQ: TensorHandle;
    /** Written. [keys, width], f32 or f64. */
    readonly dK: TensorHandle;
    /** Written. [queries, index_heads], f32 or f64. */
    readonly dWeights: TensorHandle;
    readonly scale: number;
}
/** Gradients of dsa-indexer.scores by q, k and weights; the lists are constant. */
export declare function dsaIndexerScoresBackward(args: DsaIndexerScoresBackwardArgs): void;
//# sourceMappingURL=dsa-indexer.d.ts.map