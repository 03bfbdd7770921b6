import type { TensorHandle } from '../tensor-types.ts';
export interface KvBlocksAppendArgs {
    /** [queries, ...], f32 or f64 or bf16 or f16 or e4m3 or e5m2 or i32 or i64 or u32 or u16 or u8. */
    readonly rows: TensorHandle;
    /** [sequences + 1], i32. */
    readonly queryStarts: TensorHandle;
    /** [sequences], i32. */
    readonly contextLengths: TensorHandle;
    /** [sequences, pages], i32. */
    readonly blockTable: TensorHandle;
    /** Read and written. [pages, block_size, ...], f32 or f64 or bf16 or f16 or e4m3 or e5m2 or i32 or i64 or u32 or u16 or u8. */
    readonly pages: TensorHandle;
}
/** Copies the rows of new tokens to their places in pages; other places stay as they are. */
export declare function kvBlocksAppend(args: KvBlocksAppendArgs): void;
export interface KvBlocksGatherArgs {
    /** [parts, pages, width], f32 or f64 or bf16 or f16 or e4m3 or e5m2 or i32 or i64 or u32 or u16 or u8. */
    readonly pages: TensorHandle;
    /** [blocks], i32. */
    readonly ids: TensorHandle;
    /** Read and written. [blocks, slot_bytes], u8. */
    readonly slots: TensorHandle;
    readonly offset: number;
}
/** Copies pages into slots: of each part (layer) one after another, from byte `offset` of the slot. */
export declare function kvBlocksGather(args: KvBlocksGatherArgs): void;
export interface KvBlocksScatterArgs {
    /** [blocks, slot_bytes], u8. */
    readonly slots: TensorHandle;
    /** [blocks], i32. */
    readonly ids: TensorHandle;
    /** Read and written. [parts, pages, width], f32 or f64 or bf16 or f16 or e4m3 or e5m2 or i32 or i64 or u32 or u16 or u8. */
    readonly pages: TensorHandle;
    readonly offset: number;
}
/** Copies slots into pages, the inverse of kv-blocks.gather; other pages stay as they are. */
export declare function kvBlocksScatter(args: KvBlocksScatterArgs): void;
//# sourceMappingURL=kv-blocks.d.ts.map