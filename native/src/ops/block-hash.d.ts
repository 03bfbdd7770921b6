import type { TensorHandle } from '../tensor-types.ts';
export interface BlockHashDigestArgs {
    /** [bytes], u8. */
    readonly bytes: TensorHandle;
    /** Written. [32], u8. */
    readonly hash: TensorHandle;
}
/** SHA-256 of bytes. */
export declare function blockHashDigest(args: BlockHashDigestArgs): void;
export interface BlockHashRootArgs {
    /** [bytes], u8. */
    readonly salt: TensorHandle;
    /** [bytes], u8. */
    readonly profile: TensorHandle;
    /** [bytes], u8. */
    readonly format: TensorHandle;
    /** [bytes], u8. */
    readonly tenant: TensorHandle;
    /** Written. [32], u8. */
    readonly hash: TensorHandle;
}
/** The parent of first blocks: SHA-256 of the four fields of a KV key beside its hash, as UTF-8. */
export declare function blockHashRoot(args: BlockHashRootArgs): void;
export interface BlockHashChainArgs {
    /** [32], u8. */
    readonly parent: TensorHandle;
    /** [tokens], i32. */
    readonly tokens: TensorHandle;
    /** Written. [tokens / block_size, 32], u8. */
    readonly hashes: TensorHandle;
    readonly blockSize: number;
}
/** Hash of each full block of tokens: SHA-256 of the hash before it and its token ids. */
export declare function blockHashChain(args: BlockHashChainArgs): void;
//# sourceMappingURL=block-hash.d.ts.map