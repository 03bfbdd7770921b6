import type { TensorHandle } from '../tensor-types.ts';
export interface MoeRouterSoftmaxForwardArgs {
    /** [tokens, experts], f32 or f64. */
    readonly logits: TensorHandle;
    /** [tokens, top_k], i32 or u16 or u8. */
    readonly given?: TensorHandle | null | undefined;
    /** Written. [tokens, top_k], i32 or u16 or u8. */
    readonly ids: TensorHandle;
    /** Written. [tokens, top_k], f32 or f64. */
    readonly weights: TensorHandle;
    readonly renormalise: boolean;
    readonly selectMissing: boolean;
}
/** Top-k experts by logit, or the given ones, with softmax weights; renormalise divides by the sum over the chosen. */
export declare function moeRouterSoftmaxForward(args: MoeRouterSoftmaxForwardArgs): void;
export interface MoeRouterSoftmaxBackwardArgs {
    /** [tokens, top_k], f32 or f64. */
    readonly dWeights: TensorHandle;
    /** [tokens, experts], f32 or f64. */
    readonly logits: TensorHandle;
    /** [tokens, top_k], i32 or u16 or u8. */
    readonly ids: TensorHandle;
    /** Written. [tokens, experts], f32 or f64. */
    readonly dLogits: TensorHandle;
    readonly renormalise: boolean;
}
/** Gradient of the logits through the weights of the chosen experts. */
export declare function moeRouterSoftmaxBackward(args: MoeRouterSoftmaxBackwardArgs): void;
export interface MoeRouterSigmoidForwardArgs {
    /** [tokens, experts], f32 or f64. */
    readonly logits: TensorHandle;
    /** [experts], f32 or f64. */
    readonly bias?: TensorHandle | null | undefined;
    /** [tokens, top_k], i32 or u16 or u8. */
    readonly given?: TensorHandle | null | undefined;
    /** Written. [tokens, top_k], i32 or u16 or u8. */
    readonly ids: TensorHandle;
    /** Written. [tokens, top_k], f32 or f64. */
    readonly weights: TensorHandle;
    readonly groups: number;
    readonly groupsKept: number;
    readonly normalise: boolean;
    readonly scale: number;
    readonly selectMissing: boolean;
}
/** Top-k experts by sigmoid(logit) + bias within the best groups, or the given ones; weights are sigmoids times scale. */
export declare function moeRouterSigmoidForward(args: MoeRouterSigmoidForwardArgs): void;
export interface MoeRouterSigmoidBackwardArgs {
    /** [tokens, top_k], f32 or f64. */
    readonly dWeights: TensorHandle;
    /** [tokens, experts], f32 or f64. */
    readonly logits: TensorHandle;
    /** [tokens, top_k], i32 or u16 or u8. */
    readonly ids: TensorHandle;
    /** Written. [tokens, experts], f32 or f64. */
    readonly dLogits: TensorHandle;
    readonly normalise: boolean;
    readonly scale: number;
}
/** Gradient of the logits through the weights of the chosen experts. */
export declare function moeRouterSigmoidBackward(args: MoeRouterSigmoidBackwardArgs): void;
//# sourceMappingURL=moe-router.d.ts.map