import type { ParameterSpec } from '@trilithon/core'

/** A tensor of a checkpoint file and where its elements lie in a parameter, both row-major and contiguous. */
export interface StoredPart {
  /** Name as Hugging Face writes it to disk. */
  readonly name: string
  readonly shape: readonly number[]
  /** First element in the parameter. */
  readonly offset: number
}

/**
 * A parameter (or buffer) before it is allocated: its name in memory (Hugging Face's, experts fused: `mlp.experts.gate_up_proj`), its shape, and
 * the tensors on disk that make it up, in the order of their offsets, without gaps.
 */
export interface WeightSpec extends ParameterSpec {
  readonly parts: readonly StoredPart[]
  /** How it begins when it is not read from a file. */
  readonly init: WeightInit
  /** Receives a gradient. The indexer does only where its loss is asked for. */
  readonly trained: 'always' | 'indexer' | 'never'
}

/** Standard deviation of a normal distribution, or one value for all elements. */
export type WeightInit = { readonly kind: 'normal'; readonly std: number } | { readonly kind: 'constant'; readonly value: number }

export function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1)
}

/** Parameters in all, buffers not counted; a tied head is no parameter of its own. */
export function countParameters(specs: Iterable<WeightSpec>): number {
  let count = 0
  for (const { kind, shape } of specs) if (kind !== 'buffer') count += elementsOf(shape)
  return count
}
