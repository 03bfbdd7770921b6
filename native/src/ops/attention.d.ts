import type { TensorHandle } from '../tensor-types.ts';
export interface AttentionForwardArgs {
    /** [queries, heads, width], f32 or f64. */
    readonly q: TensorHandle;
    /** [keys, kv_heads, width], f32 or f64. */
    readonly k: TensorHandle;
    /** [keys, kv_heads, value_width], f32 or f64. */
    readonly v: TensorHandle;
    /** [documents + 1], i32. */
    readonly documentStarts: TensorHandle;
    /** [chunks + 1], i32. */
    readonly chunkStarts?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkDocuments?: TensorHandle | null | undefined;
    /** [chunks], i32. */
    readonly chunkPositions?: TensorHandle | null | undefined;
    /** Written. [queries, heads, value_width], f32 or f64. */
    readonly out: TensorHandle;
    /** Written. [queries, heads], f32 or f64. */
    readonly lse?: TensorHandle | null | undefined;
    readonly scale: number;
}
/** Causal attention within packed documents; query head h reads key head h / (heads / kv_heads). */
export declare function attentionForward(args: AttentionForwardArgs): void;
export interface AttentionBackwardArgs {
    /** [queries, heads, value_width], f32 or f64. */
    readonly dOut: TensorHandle;
    /** [queries, heads, width], f32 or f64. */
    readonly q: TensorHandle;
    /** [keys, kv_heads, width], f32 or f64. */
    readonly k: TensorHandle;
    /** [keys, kv_heads, value_width], f32 or f64. */
    readonly v: TensorHandle;
    /** [queries, heads, value_width], f32 or f64. */
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
    /** Written. [queries, heads, width], f32 or f64. */
    readonly dQ: TensorHandle;
    /** Written. [keys, kv_heads, width], f32 or f64. */
    readonly dK: TensorHandle;
    /** Written. [keys, kv_heads, value_width], f32 or f64. */
    readonly dV: TensorHandle;
    readonly scale: number;
}
/** Gradients of attention.forward by q, k and v, from its out and lse. */
export declare function attentionBackward(args: AttentionBackwardArgs): void;
export interface AttentionPagedArgs {
    /** [queries, heads, width], f32 or f64. */
    readonly q: TensorHandle;
    /** [pages, block_size, kv_heads, width], f32 or f64. */
    readonly kPages: TensorHandle;
    /** [pages, block_size, kv_heads, value_width], f32 or f64. */
    readonly vPages: TensorHandle;
    /** [sequences + 1], i32. */
    readonly queryStarts: TensorHandle;
    /** [sequences], i32. */
    readonly contextLengths: TensorHandle;
    /** [sequences, pages], i32. */
    readonly blockTable: TensorHandle;
    /** Written. [queries, heads, value_width], f32 or f64. */
    readonly out: TensorHandle;
    /** Written. [queries, heads], f32 or f64. */
    readonly lse?: TensorHandle | null | undefined;
    readonly scale: number;
}
/** attention.forward for the last queries of sequences whose keys lie in pages, bit for bit. */
export declare function attentionPaged(args: AttentionPagedArgs): void;
//# sourceMappingURL=attention.d.ts.map