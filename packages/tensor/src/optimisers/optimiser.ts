import { refuse } from '../refuse.ts'
import { keep } from '../scope.ts'
import { describeShape, type Tensor, toArray, write, zeros } from '../tensor.ts'

/** What an optimiser changes. Parameters are of this form; a plugin that shards them gives their shards. */
export interface Trainable {
  readonly name: string
  readonly isTrainable: boolean
  readonly value: Tensor
  /** A missing one counts as zeros. */
  readonly gradient: Tensor | null
}

export interface OptimiserStep {
  readonly learningRate: number
  /** Gradients are multiplied by it first: what clips them. */
  readonly gradientScale?: number
}

/** A tensor that an optimiser keeps from step to step, for checkpoints: saved by name, restored with `write`. It belongs to the optimiser. */
export interface OptimiserState {
  readonly name: string
  readonly tensor: Tensor
}

/** Changes parameters by their gradients, which it leaves as they are. Frozen parameters have no state and are not touched. */
export interface Optimiser {
  /** In one order for equal models. */
  readonly states: readonly OptimiserState[]
  step(options: OptimiserStep): void
  dispose(): void
}

/** States of one kind, such as the moments of AdamW: one tensor of zeros for each trainable. */
export function zeroStates(kind: string, trainables: readonly Trainable[]): readonly OptimiserState[] {
  return trainables.map(({ name, value }) => ({ name: `${kind}.${name}`, tensor: keep(zeros(value.dtype, value.shape)) }))
}

/** Those of `parameters` that are trained, in their order. */
export function trainablesOf(parameters: Iterable<Trainable>): readonly Trainable[] {
  return [...parameters].filter(({ isTrainable }) => isTrainable)
}

/** The gradient, or zeros in the innermost scope. */
export function gradientOf({ name, value, gradient }: Trainable): Tensor {
  if (gradient === null) return zeros(value.dtype, value.shape)
  if (describeShape(gradient) !== describeShape(value)) refuse('step', name, `a gradient ${describeShape(value)}`, describeShape(gradient))
  return gradient
}

/** The count of steps, a tensor like the other states so that a checkpoint holds it. */
export class StepCount implements OptimiserState {
  readonly name: string
  readonly tensor: Tensor

  constructor(name: string) {
    this.name = name
    this.tensor = keep(zeros('f32', [1]))
  }

  /** Counts one step and returns its number, from 1. */
  next(): number {
    const step = Number(toArray(this.tensor)[0]) + 1
    write(this.tensor, [step])
    return step
  }
}
