import type { TensorHandle } from '../tensor-types.ts';
export interface EmbeddingForwardArgs {
    /** [tokens], i32. */
    readonly ids: TensorHandle;
    /** [vocabulary, width], f32 or f64. */
    readonly table: TensorHandle;
    /** Written. [tokens, width], f32 or f64. */
    readonly y: TensorHandle;
}
/** y[t] = table[ids[t]]. */
export declare function embeddingForward(args: EmbeddingForwardArgs): void;
export interface EmbeddingBackwardArgs {
    /** [tokens, width], f32 or f64. */
    readonly dY: TensorHandle;
    /** [tokens], i32. */
    readonly ids: TensorHandle;
    /** Read and written. [vocabulary, width], f32 or f64. */
    readonly dTable: TensorHandle;
    readonly accumulate: boolean;
}
/** Gradient of the table: rows of d_y summed by id, in the order of the tokens. */
export declare function embeddingBackward(args: EmbeddingBackwardArgs): void;
//# sourceMappingURL=embedding.d.ts.map