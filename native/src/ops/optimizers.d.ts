import type { TensorHandle } from '../tensor-types.ts';
export interface OptimizersAdamwArgs {
    /** Read and written. any shape, f32 or f64. */
    readonly param: TensorHandle;
    /** as param, f32 or f64. */
    readonly gradient: TensorHandle;
    /** Read and written. as param, f32 or f64. */
    readonly firstMoment: TensorHandle;
    /** Read and written. as param, f32 or f64. */
    readonly secondMoment: TensorHandle;
    readonly learningRate: number;
    readonly beta1: number;
    readonly beta2: number;
    readonly epsilon: number;
    readonly weightDecay: number;
    readonly gradientScale: number;
    readonly step: number;
}
/** One AdamW step; `step` counts from 1 and the gradient is multiplied by gradient_scale first. */
export declare function optimizersAdamw(args: OptimizersAdamwArgs): void;
export interface OptimizersSgdArgs {
    /** Read and written. any shape, f32 or f64. */
    readonly param: TensorHandle;
    /** as param, f32 or f64. */
    readonly gradient: TensorHandle;
    /** Read and written. as param, f32 or f64. */
    readonly velocity?: TensorHandle | null | undefined;
    readonly learningRate: number;
    readonly momentum: number;
    readonly weightDecay: number;
    readonly gradientScale: number;
    readonly nesterov: boolean;
}
/** One step of SGD, with momentum and Nesterov's look-ahead where asked for. */
export declare function optimizersSgd(args: OptimizersSgdArgs): void;
export interface OptimizersSignSgdArgs {
    /** Read and written. any shape, f32 or f64. */
    readonly param: TensorHandle;
    /** as param, f32 or f64. */
    readonly gradient: TensorHandle;
    readonly learningRate: number;
    readonly weightDecay: number;
}
/** param = param * (1 - learning_rate * weight_decay) - learning_rate * sign(gradient). */
export declare function optimizersSignSgd(args: OptimizersSignSgdArgs): void;
//# sourceMappingURL=optimizers.d.ts.map