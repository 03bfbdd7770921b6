import { type Disposable, defineSeam } from '../seam.ts'

/** Axes of the device mesh. *Axis* is of the mesh, *dim* of a tensor. */
export const meshAxes = ['dp_replicate', 'fsdp', 'ep', 'cp'] as const
export type MeshAxis = (typeof meshAxes)[number]

/** A parameter as a model declares it before anything is allocated. */
export interface ParameterSpec {
  readonly name: string
  readonly shape: readonly number[]
  /** `expert` parameters have the experts as dim 0 and live on the sparse mesh. */
  readonly kind: 'dense' | 'expert' | 'buffer'
  /** Layer or block whose parameters are gathered together. */
  readonly unit: string
}

/** What one axis does with a parameter: every rank has all of it, or a slice along `dim`. */
export type Placement =
  | { readonly axis: MeshAxis; readonly kind: 'replicate' }
  | { readonly axis: MeshAxis; readonly kind: 'shard'; readonly dim: number }

/** Parameters that are needed, released and have gradients together. */
export interface GatheringUnit {
  readonly name: string
  readonly parameters: readonly string[]
  /** Give the gathered parameters back after the forward and gather again for the backward. */
  readonly reshardAfterForward: boolean
}

/**
 * The whole of how a model is split, as data: the planner prices it, an external backend is asked to honour it, the checkpoint records it.
 * JSON-serialisable.
 */
export interface ParallelPlan {
  /** Ranks in all: the product of the degrees of the dense mesh. */
  readonly worldSize: number
  readonly degrees: Readonly<Record<MeshAxis, number>>
  /** Axes in mesh order (outermost first) for dense and for expert parameters; axes of degree 1 left out. */
  readonly denseMesh: readonly MeshAxis[]
  readonly sparseMesh: readonly MeshAxis[]
  /** For every parameter of the model, in declaration order; no entry means replicated on every axis. */
  readonly placements: Readonly<Record<string, readonly Placement[]>>
  readonly gatheringUnits: readonly GatheringUnit[]
  readonly profile: string
  readonly contextStyle: 'none' | 'ring' | 'ulysses'
  readonly expertExchange: 'none' | 'all-to-all'
}

/**
 * Splits parameters, experts or the sequence over ranks: the declarative half. (The operational half, hooks with native ops, is typed in
 * `@trilithon/tensor`.) Many plugins, each claims its axes. Thread: worker.
 *
 * Contract:
 * - P1 `axes` are constant, and no two plugins of a run name the same axis.
 * - P2 `contribute` is pure: it changes neither argument, and equal arguments give equal plans.
 * - P3 It changes degrees, placements and mesh entries of its own axes only.
 * - P4 Every placement names a parameter of the model and, for `shard`, a dim of it.
 * - P5 A plan survives JSON: parse(stringify(plan)) is deeply equal to plan.
 * - P6 `worldSize` stays the product of the degrees over the dense mesh.
 */
export interface Parallelism extends Disposable {
  readonly axes: readonly MeshAxis[]
  contribute(plan: ParallelPlan, parameters: readonly ParameterSpec[]): ParallelPlan
}

export const Parallelism = defineSeam<Parallelism, 'many'>({
  id: 'parallelism',
  version: 1,
  cardinality: 'many',
  thread: 'worker',
  runsIn: ['trainer', 'inference'],
})
