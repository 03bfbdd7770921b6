import type { TensorHandle } from '../tensor-types.ts';
export interface MlaAttentionForwardArgs {
    /** [queries, heads, latent_width], f32 or f64. */
    readonly q: TensorHandle;
    /** [queries, heads, rope_width], f32 or f64. */
    readonly qRope: TensorHandle;
    /** [keys, latent_width], f32 or f64. */
    readonly latent: TensorHandle;
    /** [keys, rope_width], f32 or f64. */
    readonly rope: TensorHandle;
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
    /** Written. [queries, heads, latent_width], f32 or f64. */
    readonly out: TensorHandle;
    /** Written. [queries, heads], f32 or f64. */
    readonly lse?: TensorHandle | null | undefined;
    readonly scale: number;
}
/** Causal attention of absorbed queries over latent rows of packed documents: all, or the chosen keys. */
export declare function mlaAttentionForward(args: MlaAttentionForwardArgs): void;
export interface MlaAttentionBackwardArgs {
    /** [queries, heads, latent_width], f32 or f64. */
    readonly dOut: TensorHandle;
    /** [queries, heads, latent_width], f32 or f64. */
    readonly q: TensorHandle;
    /** [queries, heads, rope_width], f32 or f64. */
    readonly qRope: TensorHandle;
    /** [keys, latent_width], f32 or f64. */
    readonly latent: TensorHandle;
    /** [keys, rope_width], f32 or f64. */
    readonly rope: TensorHandle;
    /** [queries, heads, latent_width], f32 or f64. */
    readonly out: TensorHandle;
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
    /** Written. [queries, heads, latent_width], f32 or f64. */
    readonly dQ: TensorHandle;
    /** Written. [queries, heads, rope_width], f32 or f64. */
    readonly dQRope: TensorHandle;
    /** Written. [keys, latent_width], f32 or f64. */
    readonly dLatent: TensorHandle;
    /** Written. [keys, rope_width], f32 or f64. */
    readonly dRope: TensorHandle;
    readonly scale: number;
}
/** Gradients of mla-attention.forward by q, q_rope, latent and rope, from its out and lse. */
export declare function mlaAttentionBackward(args: MlaAttentionBackwardArgs): void;
export interface MlaAttentionPagedArgs {
    /** [queries, heads, latent_width], f32 or f64. */
    readonly q: TensorHandle;
    /** [queries, heads, rope_width], f32 or f64. */
    readonly qRope: TensorHandle;
    /** [pages, block_size, latent_width], f32 or f64. */
    readonly latentPages: TensorHandle;
    /** [pages, block_size, rope_width], f32 or f64. */
    readonly ropePages: TensorHandle;
    /** [sequences + 1], i32. */
    readonly queryStarts: TensorHandle;
    /** [sequences], i32. */
    readonly contextLengths: TensorHandle;
    /** [sequences, pages], i32. */
    readonly blockTable: TensorHandle;
    /** [queries, top_k], i32. */
    readonly indices?: TensorHandle | null | undefined;
    /** [queries], i32. */
    readonly counts?: TensorHandle | null | undefined;
    /** Written. [queries, heads, latent_width], f32 or f64. */
    readonly out: TensorHandle;
    /** Written. [queries, heads], f32 or f64. */
    readonly lse?: TensorHandle | null | undefined;
    readonly scale: number;
}
/** mla-attention.forward for the last queries of sequences whose keys lie in pages, bit for bit. */
export declare function mlaAttentionPaged(args: MlaAttentionPagedArgs): void;
//# sourceMappingURL=mla-attention.d.ts.map