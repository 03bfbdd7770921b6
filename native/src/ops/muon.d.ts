import type { TensorHandle } from '../tensor-types.ts';
export interface MuonStepArgs {
    /** Read and written. [..., rows, columns], f32 or f64. */
    readonly param: TensorHandle;
    /** as param, f32 or f64. */
    readonly gradient: TensorHandle;
    /** Read and written. as param, f32 or f64. */
    readonly velocity: TensorHandle;
    readonly learningRate: number;
    readonly updateRate: number;
    readonly momentum: number;
    readonly weightDecay: number;
    readonly epsilon: number;
    readonly gradientScale: number;
    readonly nesterov: boolean;
}
/** One Muon step for each matrix; update_rate is the learning rate adjusted to its shape, learning_rate that of the decay. */
export declare function muonStep(args: MuonStepArgs): void;
//# sourceMappingURL=muon.d.ts.map