import type { Parameter, Tensor } from '@trilithon/tensor'

export interface OptimiserStep {
  readonly learningRate: number
  /** Gradients are multiplied by it first: what clips them. */
  readonly gradientScale: number
}

/** A tensor that the optimiser keeps from step to step, for checkpoints. It belongs to the optimiser. */
export interface OptimiserState {
  readonly name: string
  readonly tensor: Tensor
}

/** Changes parameters by their gradients. It leaves the gradients as they are. */
export interface Optimiser {
  /** In one order for equal models. Frozen parameters have none. */
  readonly states: readonly OptimiserState[]
  /** A parameter without a gradient counts as one whose gradient is zero. */
  step(options: OptimiserStep): void
  dispose(): void
}

/** Parameters that an optimiser changes; the rest has no state at all. */
export function trainable(parameters: Iterable<Parameter>): readonly Parameter[] {
  return [...parameters].filter(({ isTrainable }) => isTrainable)
}
