import { type Disposable, defineSeam } from '../seam.ts'
import type { ParameterSpec } from './parallelism.ts'

export type StorageDtype = 'float32' | 'bfloat16' | 'float8_e4m3'

/** How one kind of value is stored; block-scaled formats name the block of values that share a scale. */
export interface Storage {
  readonly dtype: StorageDtype
  /** rows × columns of a parameter that share one scale; absent for plain formats. */
  readonly scaleBlock?: readonly [number, number]
}

/** How a run stores its numbers, as data. JSON-serialisable. */
export interface PrecisionRecipe {
  /** Numerics profile: the reduction order of every op. */
  readonly profile: string
  /** What the optimiser updates. */
  readonly master: Storage
  /** By parameter name, what the forward multiplies with; every parameter of the model is named. */
  readonly parameters: Readonly<Record<string, Storage>>
  readonly activations: Storage
  readonly gradients: Storage
  /** What published weights are stored as: the engine serves these bytes. */
  readonly serving: Readonly<Record<string, Storage>>
  readonly kv: Storage
}

/**
 * Chooses formats for weights, activations, gradients and KV: the declarative half. (The quantiser handles are typed in
 * `@trilithon/tensor`.) One plugin. Thread: worker.
 *
 * Contract:
 * - Q1 `recipe` is pure: equal parameters give equal recipes.
 * - Q2 It names every parameter of the model and no other, in `parameters` and in `serving`.
 * - Q3 `profile` is constant, and one that the native package can compute or refuses in words.
 * - Q4 A recipe survives JSON.
 * - Q5 `parameters` and `serving` agree for every parameter: what is served is what was trained with.
 */
export interface Precision extends Disposable {
  readonly profile: string
  recipe(parameters: readonly ParameterSpec[]): PrecisionRecipe
}

export const Precision = defineSeam<Precision>({
  id: 'precision',
  version: 1,
  cardinality: 'one',
  thread: 'worker',
  runsIn: ['trainer', 'inference'],
})
